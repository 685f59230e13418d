/**
 * `kill -9` at random moments while jobs are queued, run and delivered. Deterministic: the invariants afterwards. Not
 * deterministic: the moments, and so how often a job is resumed.
 *
 * `CRASH_ROUNDS=300 node --test test/faults/crash.test.ts` is the long form.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import {
  CRASHING_SERVER,
  call,
  crashingEnvironment,
  lived,
  maxLifeMs,
  queueAgainAndAgain,
  subscribe,
} from '../support/faults/crash.ts';
import { startReceiver } from '../support/receiver.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { testDatabase } from '../support/test-database.ts';

const ROUNDS = Number(process.env.CRASH_ROUNDS ?? 3);
const WORKFLOWS = ['a', 'b', 'c'];
const RECORDS = 300;
const MAX_LIFE_MS = maxLifeMs(500);

/** Every record contains the number of its run, so that a mixture of two runs is noticed. */
const SOURCE = `
const run = process.env.FLOWHOOK_JOB + '/' + process.env.FLOWHOOK_ATTEMPT;
let text = '';
for (let i = 0; i < ${RECORDS}; i++) text += JSON.stringify({ id: String(i), run }) + '\\n';
process.stdout.write(text);
`;

test(`kill -9 at ${ROUNDS} random moments loses nothing and exposes nothing incomplete`, {
  timeout: 600_000,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-crash-'));
  const receiver = await startReceiver();
  const database = await testDatabase(directory);
  const environment = crashingEnvironment(directory, database);
  await mkdir(join(directory, 'workflows', 'default'), { recursive: true });
  await writeFile(join(directory, 'workflows', 'default', 'source.mjs'), SOURCE);
  for (const id of WORKFLOWS) {
    await writeFile(
      join(directory, 'workflows', 'default', `${id}.yaml`),
      `source: { type: command, command: [${JSON.stringify(process.execPath)}, source.mjs] }\n`,
    );
  }

  const accepted = new Set<string>();
  const reads = { whole: 0 };
  let server = await startServerProcess(environment, CRASHING_SERVER);
  for (const id of WORKFLOWS) await subscribe(server, id, receiver.url);
  for (let round = 0; round < ROUNDS; round++) {
    const load = new AbortController();
    const working = [...WORKFLOWS.map((id) => queueAgainAndAgain(server, id, accepted, load.signal))];
    working.push(readAgainAndAgain(server, reads, load.signal));
    await lived({ round, accepted, maxMs: MAX_LIFE_MS });
    await server.kill();
    load.abort();
    await Promise.all(working);
    server = await startServerProcess(environment, CRASHING_SERVER);
  }

  const ended = () =>
    new Set(
      receiver.received
        .filter(({ event }) => event.type === 'workflow_finished' || event.type === 'workflow_failed')
        .map(({ event }) => event.jobId),
    );
  await receiver.until(
    () => [...accepted].every((id) => ended().has(id)),
    `the end of ${accepted.size} jobs`,
    60_000,
  );
  for (const id of accepted) {
    const job = (await (await call(server, 'GET', `/v1/jobs/${id}`)).json()) as { state: string };
    assert.ok(job.state === 'finished' || job.state === 'failed', `${id} is ${job.state}`);
  }

  // Every committed event, read from the database, must have arrived.
  const store = await openStore(database.url, {
    own: false,
    publicUrl: () => '',
    log: silentLogger,
  });
  const team = await store.teams.bySlug({ slug: 'default' });
  const events = await store.events.list({ teamId: team?.id ?? '', afterSequence: 0, limit: 100_000 });
  await store.close();
  const arrived = () => new Set(receiver.received.map(({ event }) => event.id));
  await receiver.until(
    () => events.every(({ id }) => arrived().has(id)),
    `all ${events.length} events`,
    60_000,
  );
  assert.equal(await server.stop(), 0, server.output());
  await receiver.stop();

  const sequences = events.map(({ sequence }) => sequence);
  assert.deepEqual(
    sequences,
    Array.from({ length: sequences.length }, (_, i) => i + 1),
    'sequences without a gap',
  );
  const bodies = new Map(events.map(({ id, body }) => [id, body]));
  for (const { headers, event, text } of receiver.received) {
    assert.equal(headers['webhook-id'], event.id);
    assert.equal(text, bodies.get(event.id), 'a duplicate has the same id and the same bytes');
  }
  for (const jobId of accepted) {
    const types = events.filter((event) => event.jobId === jobId).map(({ type }) => type);
    assert.deepEqual(
      types.toSorted(),
      [...new Set(types)].toSorted(),
      `${jobId} had an event twice: ${types}`,
    );
    assert.equal(types[0], 'workflow_queued');
    assert.match(types.at(-1) ?? '', /^workflow_(finished|failed)$/);
  }
  const duplicates = receiver.received.length - arrived().size;
  console.log(
    `${ROUNDS} kills, ${accepted.size} jobs accepted, ${reads.whole} whole reads, ` +
      `${events.length} events, ${duplicates} duplicate requests`,
  );
  assert.ok(accepted.size >= ROUNDS / 2, 'the load was real');
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});

/** Reads all data and checks that it belongs to one run. */
async function readAgainAndAgain(
  server: ServerProcess,
  reads: { whole: number },
  signal: AbortSignal,
): Promise<void> {
  for (let i = 0; !signal.aborted; i++) {
    const id = WORKFLOWS[i % WORKFLOWS.length] ?? '';
    let records: { id: string; run: string }[];
    try {
      records = (await (await call(server, 'GET', `/v1/workflows/${id}/data`)).json()) as typeof records;
    } catch {
      return;
    }
    if (records.length === 0) continue;
    assert.equal(records.length, RECORDS, 'a complete run');
    assert.equal(new Set(records.map(({ run }) => run)).size, 1, 'records of one run');
    reads.whole += 1;
  }
}
