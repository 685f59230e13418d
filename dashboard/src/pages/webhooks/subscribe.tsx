/** The dialog that subscribes a URL to events of a workflow, with remarks on the URL. */
import { Alert, Button, Group, Modal, Select, Stack, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, type SubmitEvent, useState } from 'react';
import { flowhook } from '../../client.ts';
import { say, useAction } from '../../parts/action.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Prose } from '../../parts/prose.tsx';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { EventChoice } from './event-choice.tsx';
import { urlRemark } from './url-remark.ts';

const EVERY_WORKFLOW = '';
const REFUSED = 'Deliveries will be refused';

export interface SubscribeDefaults {
  workflowId?: string | undefined;
  url?: string;
  /** The page stays where it is, instead of showing the webhook. */
  stays?: boolean;
}

/** Call `open` from a button, and render `dialog` at the end of the page. */
export function useSubscribeDialog(defaults: SubscribeDefaults = {}): {
  open: () => void;
  dialog: ReactNode;
} {
  const [isOpen, { open, close }] = useDisclosure(false);
  const dialog = (
    <Modal opened={isOpen} onClose={close} title="Subscribe a webhook" size="lg">
      {isOpen && <SubscribeForm defaults={defaults} onClose={close} />}
    </Modal>
  );
  return { open, dialog };
}

function SubscribeForm({ defaults, onClose }: { defaults: SubscribeDefaults; onClose: () => void }) {
  const { data: workflows = [] } = useQuery(workflowNamesQuery());
  const navigate = useNavigate();
  const [workflowId, setWorkflowId] = useState(defaults.workflowId ?? EVERY_WORKFLOW);
  const [url, setUrl] = useState(defaults.url ?? '');
  const [events, setEvents] = useState<string[]>(['workflow_finished', 'workflow_failed']);
  const [made, setMade] = useState<{ webhookId: string; message: string }>();
  const [refusal, setRefusal] = useState<string | null>(null);
  const remark = url.includes('/inspect/insp_') ? {} : urlRemark(url.trim());

  const show = (webhookId: string) => {
    onClose();
    if (defaults.stays !== true) void navigate({ to: '/webhooks/$webhookId', params: { webhookId } });
  };
  const subscribe = useAction({
    run: async () => {
      const input = { url: url.trim(), events };
      if (workflowId !== EVERY_WORKFLOW) return flowhook.webhooks.subscribe({ workflowId, ...input });
      const { id } = await flowhook.webhooks.subscribeToAll(input);
      return { webhookId: id, message: `Subscribed: webhook ${id}.` };
    },
    changes: ['webhooks'],
    onDone: (done) => {
      // What stands in its way is not for a message that goes away.
      if (done.message.includes(REFUSED)) return setMade(done);
      say(done.message);
      show(done.webhookId);
    },
  });
  const inspect = useAction({
    run: () => flowhook.inspectors.create(),
    changes: ['inspectors'],
    onDone: (inspector) => {
      setUrl(inspector.url);
      setRefusal(inspector.refusal);
    },
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    subscribe.act();
  };

  if (made !== undefined) {
    return (
      <Stack gap="md">
        <Alert icon={<Icon name="warning" />} color="orange" title="It is subscribed, but cannot be reached">
          <Prose text={made.message} />
        </Alert>
        <Group justify="flex-end">
          <Button onClick={() => show(made.webhookId)}>Go to the webhook</Button>
        </Group>
      </Stack>
    );
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Select
          label="Workflow"
          data={[{ value: EVERY_WORKFLOW, label: 'All workflows, including future ones' }, ...workflows]}
          value={workflowId}
          onChange={(value) => setWorkflowId(value ?? EVERY_WORKFLOW)}
          allowDeselect={false}
          searchable={workflows.length > 8}
        />
        <Stack gap={4}>
          <TextInput
            label="URL"
            description="Called with POST and JSON for every event"
            placeholder="https://example.com/hooks/flowhook"
            type="url"
            value={url}
            onChange={({ currentTarget }) => {
              setUrl(currentTarget.value);
              setRefusal(null);
            }}
            error={remark.mistake}
            required
            maxLength={2_048}
            data-autofocus
          />
          {(refusal ?? remark.hint) !== undefined && (
            <Alert
              color={refusal === null ? 'gray' : 'orange'}
              p="xs"
              icon={<Icon name="warning" size={14} />}
            >
              <Prose text={refusal ?? remark.hint ?? ''} />
            </Alert>
          )}
          <Button
            variant="subtle"
            style={{ alignSelf: 'flex-start' }}
            leftSection={<Icon name="inspector" size={14} />}
            onClick={() => inspect.act()}
            loading={inspect.isActing}
          >
            Use an inspector URL
          </Button>
        </Stack>
        <EventChoice chosen={events} onChange={setEvents} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Back
          </Button>
          <Button
            type="submit"
            loading={subscribe.isActing}
            disabled={url.trim() === '' || remark.mistake !== undefined || events.length === 0}
          >
            Subscribe
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
