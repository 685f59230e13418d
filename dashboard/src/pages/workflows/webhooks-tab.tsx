/** The webhooks of one workflow. */
import { Button } from '@mantine/core';
import { useParams } from '@tanstack/react-router';
import { Icon } from '../../parts/icon.tsx';
import { useSession } from '../../session.tsx';
import { useSubscribeDialog } from '../webhooks/subscribe.tsx';
import { WebhookTable } from '../webhooks/webhook-table.tsx';

export function WebhooksTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { can } = useSession();
  const { open, dialog } = useSubscribeDialog({ workflowId });
  return (
    <>
      <WebhookTable
        of={workflowId}
        actions={
          can('webhooks') && (
            <Button leftSection={<Icon name="plus" size={14} />} onClick={open}>
              Subscribe
            </Button>
          )
        }
      />
      {dialog}
    </>
  );
}
