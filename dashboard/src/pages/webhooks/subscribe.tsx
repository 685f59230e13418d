/** The dialog that subscribes a URL to the events of a workflow, with a filter if wanted. */
import {
  Alert,
  Anchor,
  Checkbox,
  Collapse,
  Group,
  Modal,
  Select,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ComponentProps, type ReactNode, useState } from 'react';
import type { EventKind } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, ActionForm, notify, useAction } from '../../parts/action.tsx';
import { JsonView } from '../../parts/code.tsx';
import { Icon } from '../../parts/icon.tsx';
import { ErrorBox, Section } from '../../parts/page.tsx';
import { Prose } from '../../parts/values.tsx';
import { eventTypesQuery } from '../../queries/events.ts';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { CHANGE_EVENT, FilterFields, ShapeFields } from './rule/rule-fields.tsx';
import { hasRule, NO_RULE, type RuleForm, ruleOf, seemsToReadRecords } from './rule/rule-form.ts';
import { TriedEvents } from './rule/tried-events.tsx';
import { useTriedRule } from './rule/tried-rule.ts';
import styles from './subscribe.module.css';
import { urlRemark } from './typed.ts';

const EVERY_WORKFLOW = '';
const REFUSED = 'Deliveries will be refused';

interface SubscribeDefaults {
  workflowId?: string | undefined;
  url?: string;
  /** Stays on the page instead of opening the page of the webhook. */
  stays?: boolean;
}

/** Opens the dialog. @param props passed to the button */
export function SubscribeButton({
  defaults = {},
  ...props
}: { defaults?: SubscribeDefaults } & Partial<Omit<ComponentProps<typeof ActionButton>, 'action'>>) {
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <ActionButton isMain icon="plus" action={open} {...props}>
        {props.children ?? 'New webhook'}
      </ActionButton>
      <Modal opened={isOpen} onClose={close} title="New webhook" size="xl">
        <SubscribeForm defaults={defaults} onClose={close} />
      </Modal>
    </>
  );
}

function SubscribeForm({ defaults, onClose }: { defaults: SubscribeDefaults; onClose: () => void }) {
  const { data: workflows = [] } = useQuery(workflowNamesQuery());
  const navigate = useNavigate();
  const [workflowId, setWorkflowId] = useState(defaults.workflowId ?? EVERY_WORKFLOW);
  const [url, setUrl] = useState(defaults.url ?? '');
  const [events, setEvents] = useState<string[]>(['workflow_finished', 'workflow_failed']);
  const [form, setForm] = useState(NO_RULE);
  const [made, setMade] = useState<{ webhookId: string; message: string }>();
  const [refusal, setRefusal] = useState<string | null>(null);
  const change = (fields: Partial<RuleForm>) => {
    setForm((now) => ({ ...now, ...fields }));
    // No other event has records.
    if (seemsToReadRecords(fields.filter ?? '') && !seemsToReadRecords(form.filter))
      setEvents([CHANGE_EVENT]);
  };
  const isRule = hasRule(form);
  const of = { workflowId: workflowId === EVERY_WORKFLOW ? null : workflowId, events };
  const tried = useTriedRule(form, { ...of, isOn: isRule });
  const rule = { form, onChange: change, tried, ...of };
  const remark = url.includes('/inspect/insp_') ? {} : urlRemark(url.trim());

  const show = (webhookId: string) => {
    onClose();
    if (defaults.stays !== true) void navigate({ to: '/webhooks/$webhookId', params: { webhookId } });
  };
  const subscribe = useAction({
    run: async () => {
      const input = { url: url.trim(), events };
      const name = form.name.trim() || null;
      if (of.workflowId !== null && !isRule && name === null)
        return flowhook.webhooks.subscribe({ workflowId, ...input });
      const { id } = await flowhook.webhooks.create({
        ...input,
        workflowId: of.workflowId,
        ...(name === null ? {} : { name }),
        ...(isRule ? ruleOf(form) : {}),
      });
      return { webhookId: id, message: `Webhook ${id} is subscribed` };
    },
    changes: ['webhooks'],
    onDone: (done) => {
      // A warning must stay visible, unlike a notification.
      if (done.message.includes(REFUSED)) return setMade(done);
      notify(done.message);
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

  if (made !== undefined) {
    return (
      <Stack gap="md">
        <Alert
          icon={<Icon name="warning" />}
          color="orange"
          title="Subscribed, but the URL cannot be reached"
        >
          <Prose text={made.message} />
        </Alert>
        <Group justify="flex-end">
          <ActionButton isMain action={() => show(made.webhookId)}>
            View webhook
          </ActionButton>
        </Group>
      </Stack>
    );
  }
  return (
    <ActionForm
      action={subscribe}
      verb="Subscribe"
      isReady={url.trim() !== '' && remark.mistake === undefined && events.length > 0 && !tried.hasMistake}
      onBack={onClose}
    >
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
          description="Receives a POST request with JSON for every event"
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
          <Alert color={refusal === null ? 'gray' : 'orange'} p="xs" icon={<Icon name="warning" size={14} />}>
            <Prose text={refusal ?? remark.hint ?? ''} />
          </Alert>
        )}
        <ActionButton variant="subtle" icon="inspector" action={inspect} style={{ alignSelf: 'flex-start' }}>
          Use an inspector URL
        </ActionButton>
      </Stack>
      <FilterFields {...rule} />
      <EventChoice chosen={events} onChange={setEvents} />
      <More>
        <ShapeFields {...rule} />
      </More>
      {isRule && (
        <Section title="The last events with this rule">
          <TriedEvents tried={tried} />
        </Section>
      )}
    </ActionForm>
  );
}

/** What few webhooks need. */
function More({ children }: { children: ReactNode }) {
  const [isShown, shown] = useDisclosure(false);
  return (
    <Stack gap="sm">
      <Anchor
        component="button"
        type="button"
        size="sm"
        aria-expanded={isShown}
        onClick={shown.toggle}
        style={{ alignSelf: 'flex-start' }}
      >
        {isShown ? 'Hide' : 'Show'} format, first version, cooldown and name
      </Anchor>
      {isShown && children}
    </Stack>
  );
}

const ALL_EVENTS = '*';

/** Selects the events of a webhook: all, or single types, each with an example. */
function EventChoice({
  chosen,
  onChange,
}: {
  /** Types, or only `*`. */
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}) {
  const { data: types = [], error, refetch } = useQuery(eventTypesQuery());
  const isAll = chosen.includes(ALL_EVENTS);
  const toggle = (type: string, isOn: boolean) =>
    onChange(isOn ? [...chosen, type] : chosen.filter((one) => one !== type));
  return (
    <fieldset className={styles.events}>
      <legend>Events</legend>
      {error !== null && <ErrorBox error={error} onRetry={() => void refetch()} />}
      <Stack gap="xs">
        <Checkbox
          label="All events, including types added later"
          checked={isAll}
          onChange={({ currentTarget }) => onChange(currentTarget.checked ? [ALL_EVENTS] : [])}
        />
        {types.filter(isSelectable).map((kind) => (
          <Kind
            key={kind.type}
            kind={kind}
            isChosen={isAll || chosen.includes(kind.type)}
            isDisabled={isAll}
            onToggle={(isOn) => toggle(kind.type, isOn)}
          />
        ))}
      </Stack>
    </fieldset>
  );
}

/** A test event needs no subscription. */
function isSelectable({ type }: EventKind): boolean {
  return type !== 'webhook_test';
}

function Kind({
  kind: { type, description, example },
  isChosen,
  isDisabled,
  onToggle,
}: {
  kind: EventKind;
  isChosen: boolean;
  isDisabled: boolean;
  onToggle: (isOn: boolean) => void;
}) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <div>
      <Group justify="space-between" wrap="nowrap" align="flex-start" gap="sm">
        <Checkbox
          label={type}
          description={<Prose text={description} />}
          checked={isChosen}
          disabled={isDisabled}
          onChange={({ currentTarget }) => onToggle(currentTarget.checked)}
        />
        <Anchor
          component="button"
          type="button"
          size="xs"
          aria-expanded={isOpen}
          aria-label={`Example of ${type}`}
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? 'Hide' : 'Example'}
        </Anchor>
      </Group>
      <Collapse expanded={isOpen}>
        {isOpen && (
          <Text component="div" mt="xs">
            <JsonView value={example} label={`Example body of ${type}`} maxHeight="220px" />
          </Text>
        )}
      </Collapse>
    </div>
  );
}
