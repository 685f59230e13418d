/** The cost of finding lanes depends only on their number. The conformance suite tests which lanes are found. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEmptyDatabase } from '../../../test/support/store/empty-database.ts';
import { NAMES } from '../operations/lanes.ts';
import { DUE_OF_NAMED } from './lanes.ts';

test('reads one entry per lane, not every delivery', async (t) => {
  const db = await openEmptyDatabase(t);
  const steps = [
    ...db.all<{ detail: string }>(`explain query plan ${NAMES.sqlite}`, 't', '', 1),
    ...db.all<{ detail: string }>(`explain query plan ${DUE_OF_NAMED}`, 't', 1, '[]'),
  ].map(({ detail }) => detail);
  const reading = steps.filter((step) => /^(SCAN|SEARCH) (delivery|d|webhook)\b/.test(step));
  assert.equal(reading.length, 11, steps.join('\n'));
  for (const step of reading) assert.match(step, /^SEARCH \w+ USING (COVERING )?INDEX /);
  const sorted = steps.filter((step) => step.includes('TEMP B-TREE'));
  assert.equal(sorted.length, 1, 'only the first delivery of each class in an ordered lane is sorted');
  const ofALane = reading.filter((step) => /class=\? AND (next_at|event_sequence)[<>]\?/.test(step));
  assert.equal(
    ofALane.length,
    8,
    'one seek for each class, and one for deliveries with a date far in the future',
  );
});
