/** All webhooks, and how they stand. */
import { Button } from '@mantine/core';
import { Icon } from '../../parts/icon.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { useSession } from '../../session.tsx';
import { useSubscribeDialog } from './subscribe.tsx';
import { WebhookTable } from './webhook-table.tsx';

export function WebhookListPage() {
  const { can } = useSession();
  const { open, dialog } = useSubscribeDialog();
  return (
    <>
      <PageHeader
        title="Webhooks"
        actions={
          can('webhooks') && (
            <Button leftSection={<Icon name="plus" size={14} />} onClick={open}>
              Subscribe
            </Button>
          )
        }
      />
      <WebhookTable />
      {dialog}
    </>
  );
}
