/** The dialog that subscribes a URL to the events of a workflow, with a filter if wanted. */
import { Alert, Anchor, Checkbox, Collapse, Group, Modal, Select, Stack, Text } from '@mantine/core';
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
import { addressRemark, DESTINATION_KINDS, type DestinationKind, urlFrom } from './destination.ts';
import { DestinationFields } from './destination-fields.tsx';
import { DigestFields, ZoneField } from './rule/digest-fields.tsx';
import { CHANGE_EVENT, FilterFields, ShapeFields } from './rule/rule-fields.tsx';
import {
  type Format,
  hasRule,
  MY_ZONE,
  NO_RULE,
  type RuleForm,
  ruleOf,
  seemsToReadRecords,
} from './rule/rule-form.ts';
import { TriedEvents } from './rule/tried-events.tsx';
import { useTriedRule } from './rule/tried-rule.ts';
import styles from './subscribe.module.css';

const EVERY_WORKFLOW = '';
/** Sentences of the service about a webhook that will not work yet, and what they mean. */
const WARNINGS = [
  ['Deliveries will be refused', 'the URL cannot be reached'],
  ['The verification mail could not be sent', 'the address cannot be verified yet'],
] as const;
/** The events to start with: people do not want a message for every run. */
const FIRST_EVENTS = ['workflow_finished', 'workflow_failed'];
const FIRST_EVENTS_FOR_PEOPLE = [CHANGE_EVENT, 'workflow_failed'];

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
      <ActionButton isMain icon="plus" action={open} label="New webhook" {...props} />
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
  const [kind, setKind] = useState<DestinationKind>('http');
  const [address, setAddress] = useState(defaults.url ?? '');
  const [events, setEvents] = useState<string[]>(FIRST_EVENTS);
  const [form, setForm] = useState(NO_RULE);
  const [made, setMade] = useState<{ webhookId: string; message: string }>();
  const [refusal, setRefusal] = useState<string | null>(null);
  const change = (fields: Partial<RuleForm>) => {
    setForm((now) => ({ ...now, ...fields }));
    // No other event has records.
    if (seemsToReadRecords(fields.filter ?? '') && !seemsToReadRecords(form.filter))
      setEvents([CHANGE_EVENT]);
  };
  const send = (next: DestinationKind) => {
    if (next === kind) return;
    setKind(next);
    const isHttp = next === 'http';
    setForm((now) => ({ ...now, format: isHttp ? 'standard' : next, timeZone: isHttp ? '' : MY_ZONE }));
    const before = kind === 'http' ? FIRST_EVENTS : FIRST_EVENTS_FOR_PEOPLE;
    if (events.join() === before.join()) setEvents(isHttp ? FIRST_EVENTS : FIRST_EVENTS_FOR_PEOPLE);
  };
  const isRule = hasRule(form);
  const of = { workflowId: workflowId === EVERY_WORKFLOW ? null : workflowId, events };
  const tried = useTriedRule(form, { ...of, isOn: isRule });
  const rule = { form, onChange: change, tried, ...of };
  const remark = addressRemark(kind, address);

  const show = (webhookId: string) => {
    onClose();
    if (defaults.stays !== true) void navigate({ to: '/webhooks/$webhookId', params: { webhookId } });
  };
  const subscribe = useAction({
    run: async () => {
      const input = { url: urlFrom(kind, address), events };
      const name = form.name.trim() || null;
      if (of.workflowId !== null && !isRule && name === null)
        return flowhook.webhooks.subscribe({ workflowId, ...input });
      const { id, message } = await flowhook.webhooks.create({
        ...input,
        workflowId: of.workflowId,
        ...(name === null ? {} : { name }),
        ...(isRule ? ruleOf(form) : {}),
      });
      return { webhookId: id, message };
    },
    changes: ['webhooks'],
    onDone: (done) => {
      // A warning must stay visible, unlike a notification.
      if (warningIn(done.message) !== undefined) return setMade(done);
      notify(done.message);
      show(done.webhookId);
    },
  });
  const inspect = useAction({
    run: () => flowhook.inspectors.create(),
    changes: ['inspectors'],
    onDone: (inspector) => {
      setAddress(inspector.url);
      setRefusal(inspector.refusal);
    },
  });

  if (made !== undefined) {
    return (
      <Stack gap="md">
        <Alert
          icon={<Icon name="warning" />}
          color="orange"
          title={`Subscribed, but ${warningIn(made.message)}`}
        >
          <Prose text={made.message} />
        </Alert>
        <Group justify="flex-end">
          <ActionButton isMain action={() => show(made.webhookId)} label="View webhook" />
        </Group>
      </Stack>
    );
  }
  return (
    <ActionForm
      action={subscribe}
      verb="Subscribe"
      isReady={
        address.trim() !== '' && remark.mistake === undefined && events.length > 0 && !tried.hasMistake
      }
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
      <DestinationFields
        kinds={DESTINATION_KINDS}
        kind={kind}
        address={address}
        onChange={(to) => {
          setAddress(to.address);
          send(to.kind);
          setRefusal(null);
        }}
        refusal={refusal}
      >
        {kind === 'http' && (
          <ActionButton
            variant="subtle"
            icon="inspector"
            action={inspect}
            style={{ alignSelf: 'flex-start' }}
            label="Use an inspector URL"
          />
        )}
      </DestinationFields>
      <FilterFields {...rule} />
      <EventChoice chosen={events} onChange={setEvents} />
      {kind !== 'http' && <DigestFields {...rule} />}
      <More
        words={
          kind === 'http'
            ? 'format, digest, first version, cooldown and name'
            : 'time zone, first version, cooldown and name'
        }
      >
        <ShapeFields {...rule} formats={kind === 'http' ? FORMATS : []} />
        {kind === 'http' && <DigestFields {...rule} />}
        <ZoneField {...rule} />
      </More>
      {isRule && (
        <Section title="The last events with this rule">
          <TriedEvents tried={tried} />
        </Section>
      )}
    </ActionForm>
  );
}

function warningIn(message: string): string | undefined {
  return WARNINGS.find(([sentence]) => message.includes(sentence))?.[1];
}

/** Messages for Slack, Discord and Teams are destinations of their own. */
const FORMATS: readonly Format[] = ['standard', 'cloudevents', 'template'];

/** What few webhooks need. */
function More({ words, children }: { words: string; children: ReactNode }) {
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
        {isShown ? 'Hide' : 'Show'} {words}
      </Anchor>
      {isShown && children}
    </Stack>
  );
}

const ALL_EVENTS = '*';

/** Selects the events of a webhook: all, or single types, each with an example. */
function EventChoice(props: {
  /** Types, or only `*`. */
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}) {
  const { chosen, onChange } = props;
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

/** Test events and digests need no subscription. */
function isSelectable({ type }: EventKind): boolean {
  return !['webhook_test', 'webhook_digest'].includes(type);
}

function Kind(props: {
  kind: EventKind;
  isChosen: boolean;
  isDisabled: boolean;
  onToggle: (isOn: boolean) => void;
}) {
  const { isChosen, isDisabled, onToggle } = props;
  const { type, description, example } = props.kind;
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
