/** What an inspector answers, and how late: for trying retries, a refusal, or a receiver that is slow. */
import { Button, Group, NumberInput, Select } from '@mantine/core';
import type { Inspector } from 'flowhook-client';
import { type SubmitEvent, useState } from 'react';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';

const STATUSES = [
  { value: '200', label: '200 OK' },
  { value: '204', label: '204 No content' },
  { value: '301', label: '301 Moved: not followed' },
  { value: '400', label: '400 Bad request' },
  { value: '401', label: '401 Unauthorized' },
  { value: '404', label: '404 Not found' },
  { value: '410', label: '410 Gone: unsubscribes the webhook' },
  { value: '429', label: '429 Too many: slow down' },
  { value: '500', label: '500 Internal error' },
  { value: '503', label: '503 Unavailable' },
];
const LONGEST_S = 20;

/** Keyed by what it answers now. */
export function Answer({ inspector }: { inspector: Inspector }) {
  const { id, status, delayMs } = inspector;
  const [chosen, setChosen] = useState(String(status));
  const [delayS, setDelayS] = useState<number | string>(delayMs / 1_000);
  const known = STATUSES.some(({ value }) => value === String(status));
  const answer = { status: Number(chosen), delayMs: Math.round(Number(delayS) * 1_000) };
  const save = useAction({
    run: () => flowhook.inspectors.update(id, answer),
    changes: ['inspectors'],
    done: () => 'Saved: it applies from the next request',
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    save.act();
  };
  return (
    <form onSubmit={submit}>
      <Group align="flex-end" gap="sm">
        <Select
          label="It answers"
          data={known ? STATUSES : [{ value: String(status), label: String(status) }, ...STATUSES]}
          value={chosen}
          onChange={(value) => setChosen(value ?? String(status))}
          allowDeselect={false}
          w={220}
        />
        <NumberInput
          label="After"
          suffix=" s"
          value={delayS}
          onChange={setDelayS}
          min={0}
          max={LONGEST_S}
          decimalScale={3}
          w={90}
        />
        <Button
          type="submit"
          variant="default"
          loading={save.isActing}
          disabled={delayS === '' || (answer.status === status && answer.delayMs === delayMs)}
        >
          Save
        </Button>
      </Group>
    </form>
  );
}
