/** The third step: subscribing a webhook. */
import { Button } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';
import { curl } from '../../parts/curl.ts';
import { Icon } from '../../parts/icon.tsx';
import { ButtonLink } from '../../parts/link.tsx';
import { useSession } from '../../session.tsx';
import { Step } from './step.tsx';
import type { Steps } from './steps.ts';

const RECEIVER = 'https://example.com/hook';

export function WebhookStep({ steps: { toRun, hasWebhook } }: { steps: Steps }) {
  const { can } = useSession();
  const navigate = useNavigate();
  const { act, isActing } = useAction({
    run: async () => {
      const inspector = await flowhook.inspectors.create();
      const input = { url: inspector.url, events: ['*'] };
      if (toRun === undefined) await flowhook.webhooks.subscribeToAll(input);
      else await flowhook.webhooks.subscribe({ workflowId: toRun.id, ...input });
      return inspector;
    },
    changes: ['inspectors', 'webhooks'],
    done: () => 'The inspector is subscribed: send a test event, or run the workflow, and see what arrives',
    onDone: ({ id }) => void navigate({ to: '/inspector/$inspectorId', params: { inspectorId: id } }),
  });
  const workflowId = toRun?.id ?? 'people';
  return (
    <Step
      number={3}
      title="Get notified of changes"
      isDone={hasWebhook}
      action={
        can('webhooks') && (
          <>
            <Button
              variant={hasWebhook ? 'default' : 'filled'}
              leftSection={<Icon name="inspector" size={14} />}
              loading={isActing}
              onClick={() => act()}
            >
              Try with an inspector
            </Button>
            <ButtonLink to="/webhooks">Webhooks</ButtonLink>
          </>
        )
      }
      commands={{
        curl: curl({
          method: 'POST',
          path: '/v1/integrations/webhooks/subscribe',
          json: { workflowId, webhookUrl: RECEIVER, events: ['*'] },
        }),
        cli: `npx flowhook webhooks subscribe ${workflowId} ${RECEIVER}`,
      }}
    >
      {can('webhooks') ? (
        'A webhook is called when something happens: signed, and retried until it succeeds. An inspector is a URL that shows you what it receives.'
      ) : (
        <>
          A webhook is called when something happens. It takes a key with the scope <code>webhooks</code>.
        </>
      )}
    </Step>
  );
}
