/** The chore that finds stale workflows, on a real store whose clock the tests move. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { EXPECT_NOTHING } from '../model/quality/expect.ts';
import { silentLogger } from '../observe/log.ts';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import { allEvents, makeWorkflow, publishRun } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import { freshnessChecking } from './freshness.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

async function open(t: TestContext) {
  let nowMs = Date.UTC(2026, 0, 1);
  const clock = () => nowMs;
  const { store, directory } = await openEmptyStore(t, { clock });
  return {
    store,
    directory,
    clock,
    chore: (of: Partial<Parameters<typeof freshnessChecking>[0]> = {}) =>
      freshnessChecking({ store, log: silentLogger, random: () => 0, nodeId: 'node-a', ...of }),
    advance: (ms: number) => {
      nowMs += ms;
    },
    /** Creates a workflow that must succeed once an hour. */
    hourly: (id: string, team = 'default') =>
      makeWorkflow(store, { id, team, expect: { ...EXPECT_NOTHING, freshMs: HOUR_MS } }),
    reported: async ({ teamId, workflowId }: { teamId: string; workflowId: string }) =>
      (await allEvents(store, teamId)).filter(
        (event) => event.type === 'workflow_stale' && event.workflowId === workflowId,
      ).length,
  };
}

test('reports stale workflows of several teams, each once, and logs them', async (t) => {
  const { chore, advance, hourly, reported } = await open(t);
  const ats = [await hourly('a'), await hourly('b'), await hourly('c', 'other')];
  const lines: unknown[][] = [];
  const log = { ...silentLogger, info: (...line: unknown[]) => lines.push(line) } as typeof silentLogger;
  const checking = chore({ log });
  await checking.tick();
  advance(HOUR_MS);
  await checking.tick();
  await checking.tick();
  await chore().tick();
  for (const at of ats) assert.equal(await reported(at), 1);
  assert.deepEqual(
    lines,
    ats.map((at) => [at, 'workflow.stale']),
  );
});

test('a clock that was set back does not postpone by how much it was ahead', async (t) => {
  const { store, chore, advance, hourly, reported } = await open(t);
  const checking = chore();
  await checking.tick();
  advance(30 * DAY_MS);
  const at = await hourly('a');
  await publishRun(store, at, { a: 'Ada' });
  const again = await hourly('b');
  await checking.tick();
  advance(-30 * DAY_MS);
  await checking.tick();
  advance(HOUR_MS);
  await checking.tick();
  assert.deepEqual([await reported(at), await reported(again)], [1, 1]);
});

test('the first tick corrects what was written while the clock of an earlier process was ahead', async (t) => {
  const { chore, advance, hourly, reported } = await open(t);
  advance(DAY_MS);
  const at = await hourly('a');
  advance(-DAY_MS);
  const checking = chore();
  await checking.tick();
  advance(HOUR_MS);
  await checking.tick();
  assert.equal(await reported(at), 1);
});

test('a search for wrong times that fails is repeated, and delays nothing else', async (t) => {
  const { store, chore, advance, hourly, reported } = await open(t);
  const at = await hourly('a');
  advance(DAY_MS);
  const wrong = await hourly('b', 'other');
  advance(-23 * HOUR_MS);
  let isDown = true;
  const ahead: typeof store.freshness.ahead = async (input) => {
    if (isDown) throw new Error('a server is down');
    return store.freshness.ahead(input);
  };
  const checking = chore({ store: { ...store, freshness: { ...store.freshness, ahead } } });
  await checking.tick();
  assert.deepEqual([await reported(at), await reported(wrong)], [1, 0]);
  isDown = false;
  await checking.tick();
  advance(HOUR_MS);
  await checking.tick();
  assert.equal(await reported(wrong), 1);
});

test('the times of a copy are those of the original', async (t) => {
  const { store, directory, clock, chore, advance, hourly, reported } = await open(t);
  const at = await hourly('a');
  const file = join(directory, 'copy.db');
  await store.copyTo(file);
  await publishRun(store, at, { a: 'Ada' });
  advance(9 * DAY_MS);
  const copy = await openStore(`sqlite:${file}`, { publicUrl: () => '', log: silentLogger, clock });
  try {
    await chore({ store: copy }).tick();
    await chore({ store: copy }).tick();
    assert.equal((await allEvents(copy, at.teamId)).length, 1);
  } finally {
    await copy.close();
  }
  assert.equal(await reported(at), 0);
});

test('a team whose visit fails does not keep the others from being visited', async (t) => {
  const { store, chore, advance, hourly, reported } = await open(t);
  const at = await hourly('a', 'damaged');
  const other = await hourly('b');
  advance(HOUR_MS);
  const markStale: typeof store.freshness.markStale = async (input) => {
    if (input.teamId === at.teamId) throw new Error('this team is damaged');
    return store.freshness.markStale(input);
  };
  const damaged = { ...store, freshness: { ...store.freshness, markStale } };
  await chore({ store: damaged }).tick();
  assert.deepEqual([await reported(at), await reported(other)], [0, 1]);
  await chore().tick();
  assert.equal(await reported(at), 1);
});
