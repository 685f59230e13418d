/**
 * Runs, their child processes and the server die or freeze at random. Deterministic: the invariants afterwards. Not
 * deterministic: the moments, and so how each job ends.
 *
 * `CHAOS_JOBS=500 node --test test/faults/chaos.test.ts` is the long form.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { runProcesses, signalRun } from '../support/faults/run-processes.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

const JOBS = Number(process.env.CHAOS_JOBS ?? 24);
const KEY = 'key-of-the-chaos-test';
const LEASE_MS = 2_000;
const RECORDS = 40;
const TERMINAL = /^workflow_(finished|failed|canceled)$/;
const PROGRAM = join(import.meta.dirname, '../support/faults', 'short-lease-server.ts');

/** Takes about 100 ms, and leaves a child process behind. Every record contains the number of its run. */
const SHELL = `
sleep 600 &
i=0
while [ $i -lt ${RECORDS} ]; do
  echo "{\\"id\\":\\"$i\\",\\"run\\":\\"$FLOWHOOK_JOB/$FLOWHOOK_ATTEMPT\\"}"
  i=$((i + 1))
  [ $((i % 10)) = 0 ] && sleep 0.05
done
exit 0
`;
const MODULE = `
import { env } from 'node:process';
export const workflow = { retries: { max: 3, backoff: '1s' }, limits: { timeout: '5s' } };
export default async function* () {
  const run = env.FLOWHOOK_JOB + '/' + env.FLOWHOOK_ATTEMPT;
  for (let i = 0; i < ${RECORDS}; i++) {
    yield { id: String(i), run };
    if (i % 10 === 0) await new Promise((resume) => setTimeout(resume, 50));
  }
}
`;
const SETTINGS = `retries: { max: 3, backoff: 1s }
limits: { timeout: 5s }
`;
const COMMANDS = ['a', 'b', 'c', 'd', 'e'];
const WORKFLOWS = [...COMMANDS, 'module'];

test(`${JOBS} jobs end exactly once, although processes die and freeze`, {
  timeout: 900_000,
  skip: process.platform !== 'linux' && 'it looks into /proc',
}, async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'flowhook-chaos-')));
  const workflows = join(directory, 'workflows');
  const environment = {
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: workflows,
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
    FLOWHOOK_MAX_RUNNING_JOBS: '6',
    FLOWHOOK_KEEP_JOBS: '100000',
    LEASE_MS: String(LEASE_MS),
  };
  await mkdir(join(workflows, 'default'), { recursive: true });
  await writeFile(join(workflows, 'default', 'source.sh'), SHELL);
  await writeFile(join(workflows, 'default', 'module.mts'), MODULE);
  for (const id of COMMANDS) {
    await writeFile(
      join(workflows, 'default', `${id}.yaml`),
      `source: { type: command, command: [sh, source.sh] }\n${SETTINGS}`,
    );
  }

  const accepted = new Set<string>();
  const done = { kills: 0, stops: 0, serverStops: 0, lives: 0, canceled: 0 };
  const over = new AbortController();
  const disturbing = disturb(workflows, done, over.signal);
  let server = await startServerProcess(environment, { program: PROGRAM });
  try {
    while (accepted.size < JOBS) {
      done.lives += 1;
      const load = new AbortController();
      const working = WORKFLOWS.map((id) => queueAgainAndAgain(server, id, accepted, done, load.signal));
      await elapsed(random(500, 3_000));
      if (done.lives % 4 === 2) {
        server.process.kill('SIGSTOP');
        await elapsed(1.5 * LEASE_MS);
        server.process.kill('SIGCONT');
        done.serverStops += 1;
        await elapsed(random(0, 1_000));
      }
      await server.kill();
      load.abort();
      await Promise.all(working);
      await noneLeft(workflows, 'the server was killed');
      server = await startServerProcess(environment, { program: PROGRAM });
    }
    over.abort();
    await disturbing;
    await allEnded(server, accepted);
    assert.equal(await server.stop(), 0, server.output());
    await noneLeft(workflows, 'the server was stopped');
  } finally {
    over.abort();
    await server.kill();
  }

  const store = await openStore(`sqlite:${join(directory, 'data', 'flowhook.db')}`, {
    own: false,
    publicUrl: () => '',
    log: silentLogger,
  });
  const ends = await checkEvents(store, accepted);
  for (const id of WORKFLOWS) await checkVersions(store, id);
  await store.close();
  await rm(directory, { recursive: true, force: true });
  console.log(
    `${accepted.size} jobs: ${JSON.stringify(ends)}; killed ${done.kills} and froze ${done.stops} processes of runs, ` +
      `killed ${done.lives} servers and froze ${done.serverStops}, canceled ${done.canceled}`,
  );
});

/** Kills or freezes a process of a run every 100 to 350 ms. */
async function disturb(
  directory: string,
  done: { kills: number; stops: number },
  signal: AbortSignal,
): Promise<void> {
  const thawing = new Set<Promise<void>>();
  while (!signal.aborted) {
    await elapsed(random(100, 350));
    const programs = runProcesses(directory).filter(({ isProgram }) => isProgram);
    const victim = programs[Math.floor(Math.random() * programs.length)];
    if (victim === undefined) continue;
    if (Math.random() < 0.5) {
      signalRun(victim, 'SIGKILL', directory);
      done.kills += 1;
      continue;
    }
    signalRun(victim, 'SIGSTOP', directory);
    done.stops += 1;
    const thaw = elapsed(random(50, 1_000)).then(() => signalRun(victim, 'SIGCONT', directory));
    thawing.add(thaw);
    thaw.finally(() => thawing.delete(thaw));
  }
  await Promise.all(thawing);
}

/** Queues the workflow repeatedly, records the accepted jobs, and cancels one in ten. */
async function queueAgainAndAgain(
  server: ServerProcess,
  id: string,
  accepted: Set<string>,
  done: { canceled: number },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const answer = await call(server, 'POST', `/v1/workflows/${id}/queue`);
      await answer.body?.cancel();
      assert.ok(answer.status === 200 || answer.status === 400, String(answer.status));
      const jobId = answer.headers.get('x-job-id') ?? '';
      if (answer.status === 200) accepted.add(jobId);
      await elapsed(30);
      if (answer.status !== 200 || Math.random() > 0.1) continue;
      const canceled = await call(server, 'POST', `/v1/jobs/${jobId}/cancel`);
      if (canceled.status === 200) done.canceled += 1;
      await canceled.body?.cancel();
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      // The server was killed: whether it accepted the job is unknown.
      return;
    }
  }
}

async function allEnded(server: ServerProcess, accepted: ReadonlySet<string>): Promise<void> {
  const unended = new Set(accepted);
  for (const giveUpAt = performance.now() + 120_000; unended.size > 0; await elapsed(100)) {
    for (const id of unended) {
      const job = (await (await call(server, 'GET', `/v1/jobs/${id}`)).json()) as {
        finishedAt: string | null;
      };
      if (job.finishedAt !== null) unended.delete(id);
    }
    assert.ok(performance.now() < giveUpAt, `${[...unended]} never ended`);
  }
}

/** Every accepted job was queued once and ended once; every other job ended once too. */
async function checkEvents(store: Store, accepted: ReadonlySet<string>): Promise<Record<string, number>> {
  const teamId = (await store.teams.bySlug({ slug: 'default' }))?.id ?? '';
  const events = await store.events.list({ teamId, afterSequence: 0, limit: 1_000_000 });
  const types = Map.groupBy(events, ({ jobId }) => jobId ?? '');
  const ends: Record<string, number> = {};
  for (const jobId of new Set([...accepted, ...types.keys()])) {
    const sent = (types.get(jobId) ?? []).map(({ type }) => type);
    assert.deepEqual(sent, [...new Set(sent)], `${jobId} has an event twice: ${sent}`);
    assert.equal(sent[0], 'workflow_queued', `${jobId}: ${sent}`);
    assert.match(sent.at(-1) ?? '', TERMINAL, `${jobId}: ${sent}`);
    assert.equal(sent.filter((type) => TERMINAL.test(type)).length, 1, `${jobId}: ${sent}`);
    const state = (await store.jobs.get({ teamId, id: jobId }))?.state ?? 'none';
    assert.equal(`workflow_${state}`, sent.at(-1), jobId);
    ends[state] = (ends[state] ?? 0) + 1;
  }
  return ends;
}

/** Each version belongs to one job, and contains the records of one run. */
async function checkVersions(store: Store, workflowId: string): Promise<void> {
  const teamId = (await store.teams.bySlug({ slug: 'default' }))?.id ?? '';
  const versions = await store.records.versions({ teamId, workflowId, limit: 10_000 });
  assert.equal(new Set(versions.map(({ jobId }) => jobId)).size, versions.length, 'one version for each job');
  assert.deepEqual(
    versions.map(({ number }) => number),
    versions.map((_, n) => versions.length - n),
  );
  for (const { number, jobId } of versions) {
    const job = await store.jobs.get({ teamId, id: jobId });
    assert.deepEqual([job?.state, job?.version], ['finished', number]);
    const { json, count } = await store.records.page({
      teamId,
      workflowId,
      version: number,
      afterSeq: 0,
      rows: 1_000,
    });
    assert.equal(count, RECORDS);
    const records = JSON.parse(`[${Buffer.from(json).toString()}]`) as { run: string }[];
    assert.deepEqual([...new Set(records.map(({ run }) => run))], [`${jobId}/${job?.attempt}`]);
  }
}

/** Resolves when no process of a run is left. */
async function noneLeft(directory: string, after: string): Promise<void> {
  for (const giveUpAt = performance.now() + 90_000; ; await elapsed(20)) {
    const left = runProcesses(directory);
    if (left.length === 0) return;
    assert.ok(
      performance.now() < giveUpAt,
      `90 s after ${after}, these processes are left: ${JSON.stringify(left)}`,
    );
  }
}

function call(server: ServerProcess, method: string, path: string): Promise<Response> {
  return fetch(server.url + path, { method, headers: { 'x-api-key': KEY } });
}

function random(from: number, to: number): number {
  return from + Math.random() * (to - from);
}

/** Waits in real time, only for the random moments. */
function elapsed(ms: number): Promise<void> {
  return new Promise((arrive) => {
    setTimeout(arrive, ms);
  });
}
