/**
 * `kill -9` at random moments while many callers queue and cancel jobs at the same time, so that their transactions are
 * shared. Afterwards every accepted call is in the database, with its event in the history of its workflow.
 *
 * `QUEUE_CRASH_ROUNDS=300 node --test test/faults/queue-crash.test.ts` is the long form.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import { call, KEY, lived } from '../support/faults/crash.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { testDatabase } from '../support/test-database.ts';

const ROUNDS = Number(process.env.QUEUE_CRASH_ROUNDS ?? 3);
const CALLERS = 32;
const MAX_LIFE_MS = 400;

test(`no queue call that was accepted is lost by kill -9 at ${ROUNDS} random moments`, {
  timeout: 600_000,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-queue-crash-'));
  const database = await testDatabase(directory);
  const environment = {
    ...database.settings,
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
    FLOWHOOK_KEEP_JOBS: '100000',
    // One job runs until it is canceled or killed, and all others wait.
    FLOWHOOK_MAX_RUNNING_JOBS: '1',
  };
  await mkdir(join(directory, 'workflows', 'default'), { recursive: true });
  for (let n = 0; n < CALLERS; n++) {
    const text = 'source: { type: command, command: [sleep, "900"] }\n';
    await writeFile(join(directory, 'workflows', 'default', `w${n}.yaml`), text);
  }

  /** The workflow of each accepted job. */
  const accepted = new Map<string, string>();
  let server = await startServerProcess(environment);
  for (let round = 0; round < ROUNDS; round++) {
    const callers = Array.from({ length: CALLERS }, (_, n) => queueAndCancel(server, `w${n}`, accepted));
    await lived({ round, accepted, maxMs: MAX_LIFE_MS });
    await server.kill();
    await Promise.all(callers);
    server = await startServerProcess(environment);
  }
  assert.equal(await server.stop(), 0, server.output());

  const store = await openStore(database.url, { own: false, publicUrl: () => '', log: silentLogger });
  const teamId = (await store.teams.bySlug({ slug: 'default' }))?.id ?? '';
  for (const [id, workflowId] of accepted) {
    const job = await store.jobs.get({ teamId, id });
    assert.equal(job?.workflowId, workflowId, `${id} of ${workflowId} was accepted`);
    const { events } = await store.events.history({ teamId, workflowId, jobId: id, limit: 100 });
    const types = events.toReversed().map(({ type }) => type);
    assert.equal(types[0], 'workflow_queued', `${id} has ${types}`);
    assert.equal(new Set(types).size, types.length, `${id} had an event twice: ${types}`);
  }
  const events = await store.events.list({ teamId, afterSequence: 0, limit: 1_000_000 });
  assert.deepEqual(
    events.map(({ sequence }) => sequence),
    events.map((_, n) => n + 1),
  );
  await store.close();
  console.log(`${ROUNDS} kills, ${accepted.size} jobs accepted, ${events.length} events`);
  assert.ok(accepted.size >= ROUNDS / 2, 'the load was real');
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});

/** Queues jobs of a workflow, and cancels each so that the next can be queued, until the server is killed. */
async function queueAndCancel(
  server: ServerProcess,
  workflowId: string,
  accepted: Map<string, string>,
): Promise<void> {
  for (;;) {
    // If the server was killed, it is unknown whether it accepted the call.
    const queued = await call(server, 'POST', `/v1/workflows/${workflowId}/queue`).catch(() => undefined);
    if (queued === undefined) return;
    await queued.body?.cancel().catch(() => {});
    assert.ok(queued.status === 200 || queued.status === 400, String(queued.status));
    // Both responses name the job that occupies the workflow.
    const id = queued.headers.get('x-job-id') ?? '';
    if (queued.status === 200) accepted.set(id, workflowId);
    const canceled = await call(server, 'POST', `/v1/jobs/${id}/cancel`).catch(() => undefined);
    await canceled?.body?.cancel().catch(() => {});
  }
}
