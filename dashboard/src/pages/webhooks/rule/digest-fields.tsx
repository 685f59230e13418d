/** When matches are sent: immediately, or gathered in a digest; and the time zone of messages for people. */
import { Group, Select, Stack, TextInput } from '@mantine/core';
import { Note } from '../../../parts/values.tsx';
import { isForPeople, MY_ZONE, type RuleForm } from './rule-form.ts';
import type { TriedRule } from './tried-rule.ts';

interface DigestFieldsProps {
  form: RuleForm;
  onChange: (change: Partial<RuleForm>) => void;
  tried: TriedRule;
}

const UTC = 'UTC';
const ZONES = [...new Set([UTC, MY_ZONE, ...Intl.supportedValuesOf('timeZone')])];

export function DigestFields({ form, onChange, tried }: DigestFieldsProps) {
  const { digest, every, at, atZone, cooldown } = form;
  const mistake = tried.mistakeOf('digest')?.message;
  const isAt = digest === 'at';
  return (
    <Stack gap="xs">
      <Group gap="sm" align="flex-start">
        <Select
          label="Send"
          data={[
            { value: '', label: 'immediately' },
            { value: 'every', label: 'gathered, every …' },
            { value: 'at', label: 'gathered, once a day at …' },
          ]}
          value={digest}
          onChange={(value) => {
            const next = (value ?? '') as RuleForm['digest'];
            onChange({
              digest: next,
              every: next === 'every' ? every || '1h' : '',
              at: next === 'at' ? at || '08:00' : '',
              atZone: next === 'at' ? atZone || MY_ZONE : '',
              // A digest already gathers the changes of a record.
              ...(next === '' ? {} : { cooldown: '' }),
            });
          }}
          allowDeselect={false}
          error={digest === '' && mistake}
          w={200}
        />
        {digest === 'every' && (
          <TextInput
            label="Period"
            placeholder="1h"
            value={every}
            onChange={({ currentTarget }) => onChange({ every: currentTarget.value })}
            error={mistake}
            w={150}
          />
        )}
        {isAt && (
          <>
            <TextInput
              type="time"
              label="Time"
              value={at}
              onChange={({ currentTarget }) => onChange({ at: currentTarget.value })}
              error={mistake}
              w={120}
            />
            <ZoneSelect
              label="Time zone of this time"
              value={atZone}
              onChange={(zone) => onChange({ atZone: zone })}
            />
          </>
        )}
      </Group>
      <Note>{noteOf(form)}</Note>
      {cooldown.trim() !== '' && digest === '' && (
        <Note>A digest replaces the cooldown, because it already gathers the changes of a record.</Note>
      )}
    </Stack>
  );
}

function noteOf({ digest }: RuleForm): string {
  if (digest === '') return 'Each event that matches is one message.';
  const rest =
    'message lists what matched, each record with its newest state. If nothing matches, nothing is sent.';
  if (digest === 'at') return `One ${rest}`;
  return `1m to 7d, from the first match on. At its end, one ${rest}`;
}

/** The zone of times in messages for people; nothing for other formats. */
export function ZoneField({ form, onChange, tried }: DigestFieldsProps) {
  const { format, timeZone, atZone } = form;
  if (!isForPeople(format)) return null;
  return (
    <ZoneSelect
      label="Time zone of times in messages"
      none={`Default (${atZone || UTC})`}
      value={timeZone}
      onChange={(zone) => onChange({ timeZone: zone })}
      error={tried.mistakeOf('timeZone')?.message}
    />
  );
}

function ZoneSelect(props: {
  label: string;
  /** The choice that leaves it to the service. */
  none?: string;
  value: string;
  onChange: (zone: string) => void;
  error?: string | undefined;
}) {
  const { label, none, value, onChange, error } = props;
  const known = value === '' || ZONES.includes(value) ? ZONES : [value, ...ZONES];
  return (
    <Select
      label={label}
      data={[
        ...(none === undefined ? [] : [{ value: '', label: none }]),
        ...known.map((zone) => ({ value: zone, label: zone })),
      ]}
      value={value}
      onChange={(zone) => onChange(zone ?? '')}
      allowDeselect={false}
      searchable
      limit={100}
      nothingFoundMessage="No such zone"
      error={error}
      w={220}
    />
  );
}
