/**
 * `kill -9` of two nodes at random moments while they find stale workflows: each is reported once. Deterministic: the
 * events afterwards. Not deterministic: the moments.
 *
 * `FRESHNESS_CRASH_ROUNDS=50 node --test test/faults/freshness-crash.test.ts` is the long form.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { EXPECT_NOTHING } from '../../src/model/quality/expect.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { subscribe } from '../../src/store/conformance/sending.ts';
import { makeWorkflow, publishRun } from '../../src/store/conformance/setup.ts';
import { openStore } from '../../src/store/open.ts';
import { elapsed } from '../support/faults/crash.ts';
import { testDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const ROUNDS = Number(process.env.FRESHNESS_CRASH_ROUNDS ?? 2);
const WORKFLOWS = Array.from({ length: 25 }, (_, n) => `w${n}`);
const MAX_LIFE_MS = 150;
const NODE = join(import.meta.dirname, '../support/faults/mark-stale.ts');

test(`kill -9 at ${ROUNDS} random moments reports each stale workflow once`, {
  timeout: 300_000,
}, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-freshness-crash-'));
  await mkdir(join(directory, 'data'));
  const database = await testDatabase(directory);
  const store = await openStore(database.url, { publicUrl: () => '', log: silentLogger });
  t.after(async () => {
    await store.close();
    await database.drop();
    await rm(directory, { recursive: true, force: true });
  });
  const expect = { ...EXPECT_NOTHING, freshMs: 1 };
  const { teamId } = await makeWorkflow(store, { id: 'always fresh' });
  for (const id of WORKFLOWS) await makeWorkflow(store, { id, expect });
  const webhookId = await subscribe(store, { teamId, workflowId: null }, ['workflow_stale']);
  const events = async () => {
    const all = await store.events.list({ teamId, afterSequence: 0, limit: 100_000 });
    return all.filter(({ type }) => type === 'workflow_stale' || type === 'workflow_recovered');
  };
  const stale = async () => {
    const all = await store.workflows.list({ teamId, limit: 100 });
    return all.filter(({ staleSince }) => staleSince !== null).map(({ id }) => id);
  };

  let interrupted = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const nodes = await Promise.all([startNode(database.url), startNode(database.url)]);
    for (const node of nodes) begin(node);
    await elapsed(Math.random() * MAX_LIFE_MS);
    await Promise.all(nodes.map(kill));
    const left = WORKFLOWS.length - (await stale()).length;
    if (left > 0 && left < WORKFLOWS.length) interrupted += 1;
    const last = await startNode(database.url);
    begin(last);
    await until('every workflow is stale', async () => (await stale()).length === WORKFLOWS.length);
    await kill(last);
    for (const workflowId of WORKFLOWS) await publishRun(store, { teamId, workflowId }, { a: `${round}` });
    assert.deepEqual(await stale(), []);
  }

  t.diagnostic(`${interrupted} of ${ROUNDS} kills interrupted the search`);
  const expected = Array.from({ length: ROUNDS }, () => ['workflow_stale', 'workflow_recovered']).flat();
  const made = Map.groupBy(await events(), ({ workflowId }) => workflowId);
  assert.deepEqual([...made.keys()].sort(), WORKFLOWS.toSorted());
  for (const [workflowId, of] of made) {
    assert.deepEqual(
      of.map(({ type }) => type),
      expected,
      String(workflowId),
    );
  }
  const deliveries = await store.deliveries.list({ teamId, webhookId, limit: 100_000 });
  assert.equal(deliveries.length, ROUNDS * WORKFLOWS.length);
});

async function startNode(databaseUrl: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [NODE, databaseUrl], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child.stdout as NodeJS.EventEmitter, 'data');
  return child;
}

function begin(node: ChildProcess): void {
  node.stdin?.write('go');
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
