/** The fields of a rule: when a webhook is called, and what it receives. */
import {
  Alert,
  Anchor,
  Autocomplete,
  Group,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { useRef, useState } from 'react';
import { Icon } from '../../../parts/icon.tsx';
import { Note, Prose } from '../../../parts/values.tsx';
import { ExpressionInput, MistakeText } from './expression-input.tsx';
import { useKnownNames } from './known-names.ts';
import { FIRST_TEMPLATE, type Format, isForPeople, type RuleForm, seemsToReadRecords } from './rule-form.ts';
import {
  asksField,
  expressionOf,
  type Field,
  fieldsFor,
  isUnfinished,
  kindOf,
  labelOf,
  START_OPTIONS,
  type Start,
  type StartKind,
  startOf,
  typedField,
  valueMistake,
} from './starts.ts';
import type { TriedRule } from './tried-rule.ts';

/** The type of event that has differences of records. */
export const CHANGE_EVENT = 'workflow_data_change';
const ANYTHING = 'anything';
const OWN = 'own';

interface RuleFieldsProps {
  form: RuleForm;
  onChange: (change: Partial<RuleForm>) => void;
  workflowId: string | null;
  events: readonly string[];
  /** What the service says about the rule. */
  tried: TriedRule;
}

const WORDS = {
  question: 'Notify me when',
  anything: 'one of the events happens',
  empty: 'every event is sent',
};

/** What must happen: a starting point, and the expression. @param props.words by default those of a webhook */
export function FilterFields({
  form,
  onChange,
  workflowId,
  events,
  tried,
  words = WORDS,
}: RuleFieldsProps & { words?: typeof WORDS }) {
  const known = useKnownNames(workflowId);
  const input = useRef<HTMLTextAreaElement>(null);
  const { filter } = form;
  const start = startOf(filter);
  const setFilter = (text: string) => onChange({ filter: text });
  const mistake = tried.mistakeOf('filter');
  const misses = seemsToReadRecords(filter) && !events.includes('*') && !events.includes(CHANGE_EVENT);
  return (
    <Stack gap="sm">
      <Group gap="sm" align="flex-start">
        <Select
          label={words.question}
          data={[
            { value: ANYTHING, label: words.anything },
            ...START_OPTIONS,
            { value: OWN, label: 'my own expression is true' },
          ]}
          value={start?.kind ?? (filter.trim() === '' ? ANYTHING : OWN)}
          onChange={(kind) => {
            if (kind === OWN) input.current?.focus();
            else if (kind === ANYTHING || kind === null) setFilter('');
            else setFilter(expressionOf(begun(kind as StartKind, start, known.fields)));
          }}
          allowDeselect={false}
          w={200}
          maxDropdownHeight={400}
        />
        {start !== undefined && (
          <StartFields
            start={start}
            fields={known.fields}
            onChange={(next) => setFilter(expressionOf(next))}
          />
        )}
      </Group>
      {start !== undefined && <Note>{kindOf(start.kind).help}</Note>}
      {misses && (
        <Alert color="orange" p="xs" icon={<Icon name="warning" size={14} />}>
          Only {CHANGE_EVENT} has records, and this webhook does not receive it, so this filter matches
          nothing.
        </Alert>
      )}
      <ExpressionInput
        label="Filter"
        description={
          <>
            An expression that must be true. Empty: {words.empty}. Type a name, or press Ctrl and Space, for
            suggestions.{' '}
            <Anchor inherit href="/docs/guide/guides/filters.html" underline="always">
              Examples
            </Anchor>
          </>
        }
        placeholder='fallsBy(previous.price, record.price, "5%")'
        value={filter}
        onChange={setFilter}
        known={known}
        minRows={2}
        inputRef={input}
        error={
          mistake !== undefined && !isUnfinished(start) && <MistakeText {...mistake} source={filter.trim()} />
        }
      />
    </Stack>
  );
}

/** The field and the value that a starting point asks for. */
function StartFields(props: { start: Start; fields: readonly Field[]; onChange: (start: Start) => void }) {
  const { start, fields, onChange } = props;
  // A value such as `5 %` or an unfinished `-` stays as it was typed.
  const [typed, setTyped] = useState(start.value);
  const [typedName, setTypedName] = useState(labelOf(start.field, fields));
  if (!asksField(start.kind)) return null;
  const { asks } = kindOf(start.kind);
  const value = expressionOf({ ...start, value: typed }) === expressionOf(start) ? typed : start.value;
  const name = typedField(typedName, fields) === start.field ? typedName : labelOf(start.field, fields);
  const offered = fieldsFor(start.kind, fields);
  const field = fields.find(({ accessor }) => accessor === start.field);
  const isOtherType = field !== undefined && field.type !== (asks === 'text' ? 'text' : 'number');
  return (
    <>
      <Autocomplete
        size="xs"
        label="Field"
        placeholder={asks === 'text' ? 'title' : 'price'}
        data={[...new Set(offered.map(({ label }) => label))]}
        value={name}
        onChange={(text) => {
          setTypedName(text);
          onChange({ ...start, field: typedField(text, fields) });
        }}
        error={
          start.field === ''
            ? `${fields.length === 0 ? 'Enter the name of' : 'Choose'} a field`
            : isOtherType &&
              `This field is ${field.type === 'text' ? 'a text' : `no ${asks === 'text' ? 'text' : 'number'}`} so far`
        }
        w={150}
        maxDropdownHeight={280}
      />
      <TextInput
        label={asks === 'text' ? 'Word' : asks === 'share' ? 'By at least' : 'Value'}
        value={value}
        onChange={({ currentTarget }) => {
          setTyped(currentTarget.value);
          onChange({ ...start, value: currentTarget.value });
        }}
        error={valueMistake({ ...start, value })}
        w={100}
      />
    </>
  );
}

/** Format, first version, cooldown and name. @param props.formats those to choose from */
export function ShapeFields({
  form,
  onChange,
  workflowId,
  tried,
  formats,
}: RuleFieldsProps & { formats: readonly Format[] }) {
  const known = useKnownNames(workflowId);
  const { name, format, template, firstVersion, cooldown } = form;
  const mistake = tried.mistakeOf('template');
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        {formats.length > 1 && (
          <Select
            label="Format"
            description="What your receiver gets"
            data={formats.map((value) => ({ value, label: FORMATS[value] }))}
            value={format}
            onChange={(value) => {
              if (value === null) return;
              const next = value as Format;
              onChange({
                format: next,
                ...(next === 'template' && template === '' ? { template: FIRST_TEMPLATE } : {}),
                ...(isForPeople(next) ? {} : { timeZone: '' }),
              });
            }}
            error={tried.mistakeOf('format')?.message}
            allowDeselect={false}
          />
        )}
        <Select
          label="First version"
          description="By default skipped if the filter reads records"
          data={[
            { value: '', label: 'Default' },
            { value: 'send', label: 'Send it' },
            { value: 'skip', label: 'Skip it' },
          ]}
          value={firstVersion}
          onChange={(value) => onChange({ firstVersion: (value ?? '') as RuleForm['firstVersion'] })}
          error={tried.mistakeOf('firstVersion')?.message}
          allowDeselect={false}
        />
        <TextInput
          label="Cooldown per record"
          description="Such as 30m, 6h or 7d"
          placeholder={form.digest === '' ? 'None' : 'A digest already gathers changes'}
          value={cooldown}
          onChange={({ currentTarget }) => onChange({ cooldown: currentTarget.value })}
          error={tried.mistakeOf('cooldown')?.message}
          disabled={form.digest !== '' && cooldown === ''}
        />
        <TextInput
          label="Name of the webhook"
          description="Shown instead of the URL"
          placeholder="None"
          value={name}
          onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
          maxLength={100}
        />
      </SimpleGrid>
      {cooldown.trim() !== '' && (
        <Note>
          After a record was sent, its changes are not sent for this long. When the cooldown ends, its newest
          state is sent if it still matches and differs.
        </Note>
      )}
      {format === 'template' && (
        <ExpressionInput
          label="Template"
          description={
            <>
              JSON. In a text,{' '}
              <Text span inherit ff="monospace">
                {`\${record.price}`}
              </Text>{' '}
              is replaced by the value of that expression. A text that is only one expression becomes its
              value.
            </>
          }
          value={template}
          onChange={(text) => onChange({ template: text })}
          known={known}
          isTemplate
          minRows={6}
          error={mistake !== undefined && <Prose text={mistake.message} />}
        />
      )}
    </Stack>
  );
}

const FORMATS: Record<Format, string> = {
  standard: 'Standard',
  cloudevents: 'CloudEvents',
  template: 'Template',
  slack: 'Slack',
  discord: 'Discord',
  teams: 'Teams',
  mail: 'Mail',
};

/** The starting point of this kind; it keeps the field and value of the previous one where they fit. */
function begun(kind: StartKind, before: Start | undefined, fields: readonly Field[]): Start {
  const { asks } = kindOf(kind);
  const isText = asks === 'text';
  const keeps = before !== undefined && isText === (kindOf(before.kind).asks === 'text');
  const [best] = fieldsFor(kind, fields);
  const field =
    keeps && before.field !== ''
      ? before.field
      : best?.type === (isText ? 'text' : 'number')
        ? best.accessor
        : '';
  const start = { kind, field, value: keeps ? before.value : '' };
  return asks === 'share' && valueMistake(start) !== undefined ? { ...start, value: '5%' } : start;
}
