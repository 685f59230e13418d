/** The cost of finding lanes grows with their number alone. What is found is tested by the conformance suite. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { NAMES } from '../operations/lanes.ts';
import { Database } from './database.ts';
import { DUE_OF_NAMED } from './lanes.ts';
import { migrate } from './migrate.ts';

test('steps through the lanes and never through the deliveries', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-lanes-'));
  const path = join(directory, 'flowhook.db');
  migrate({ path, log: silentLogger, now: 1 });
  const db = new Database(path);
  t.after(async () => {
    db.close();
    await rm(directory, { recursive: true });
  });
  const steps = [
    ...db.all<{ detail: string }>(`explain query plan ${NAMES.sqlite}`, '', '', 1),
    ...db.all<{ detail: string }>(`explain query plan ${DUE_OF_NAMED}`, 1, '[]'),
  ].map(({ detail }) => detail);
  const reading = steps.filter((step) => /^(SCAN|SEARCH) (delivery|d|webhook)\b/.test(step));
  assert.equal(reading.length, 11, steps.join('\n'));
  for (const step of reading) assert.match(step, /^SEARCH \w+ USING (COVERING )?INDEX /);
  const sorted = steps.filter((step) => step.includes('TEMP B-TREE'));
  assert.equal(sorted.length, 1, 'only the first delivery of each class, of an ordered lane');
  const ofALane = reading.filter((step) => /class=\? AND (next_at|event_sequence)[<>]\?/.test(step));
  assert.equal(ofALane.length, 8, 'one seek for each class, and one for what is dated far ahead');
});
