/** Pushes on a real store, with a client that pauses where the test needs it. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Problem } from '../model/error.ts';
import { LEASE_MS } from '../model/job.ts';
import { type Logger, silentLogger } from '../observe/log.ts';
import { Ingester } from '../records/ingester.ts';
import { makeWorkflow } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { InterruptedError } from './attempt.ts';
import { Engine } from './engine.ts';
import { Leases } from './leases.ts';
import { type Push, type PushDeps, PushJobs } from './push-job.ts';

interface Bench {
  deps: PushDeps;
  store: Store;
  pushes: PushJobs;
  push: Push;
  advance(ms: number): void;
  /** Resolves with the running push, once there is one. */
  running(): Promise<{ teamId: string; jobId: string; attempt: number }>;
}

async function benchOf(t: TestContext, waitMs: number): Promise<Bench> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-push-'));
  const databaseUrl = `sqlite:${join(directory, 'flowhook.db')}`;
  let ahead = 0;
  const store = await openStore(databaseUrl, {
    clock: () => Date.now() + ahead,
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const ingester = new Ingester({ databaseUrl, log: silentLogger });
  const deps = { store, ingester, log: silentLogger, observer: {}, nodeId: 'local', random: () => 0, waitMs };
  const pushes = new PushJobs(deps);
  t.after(async () => {
    await pushes.stop();
    await ingester.close();
    await store.close();
    await rm(directory, { recursive: true });
  });
  const at = await makeWorkflow(store, { source: { type: 'push' } });
  return {
    deps,
    store,
    pushes,
    push: {
      ...at,
      mode: undefined,
      idempotencyKey: null,
      format: 'ndjson',
      encoding: 'identity',
      bytes: bytes('{"id":1}\n'),
    },
    advance: (ms) => {
      ahead += ms;
    },
    async running() {
      for (;;) {
        const [found] = await store.jobs.abandoned({ nodeId: 'local' });
        if (found !== undefined) return found.held;
        await new Promise(setImmediate);
      }
    },
  };
}

/** Yields the text, then waits for `until`. `asked` is called when the first chunk is requested. */
async function* bytes(
  text: string,
  until?: Promise<unknown>,
  asked?: () => void,
): AsyncGenerator<Uint8Array> {
  asked?.();
  yield Buffer.from(text);
  await until;
}

function problem(code: Problem['code']): (error: unknown) => boolean {
  return (error) => error instanceof Problem && error.code === code;
}

test('a push that has waited too long is refused, and the response names the unfinished job', async (t) => {
  const { pushes, push, running } = await benchOf(t, 0);
  const rest = Promise.withResolvers<void>();
  const first = pushes.run({ ...push, bytes: bytes('{"id":1}\n', rest.promise) });
  const { jobId } = await running();
  await assert.rejects(pushes.run(push), (error) => {
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.code, error.status], ['push_busy', 409]);
    assert.deepEqual([error.headers['x-job-id'], error.headers['retry-after']], [jobId, '5']);
    return true;
  });
  rest.resolve();
  assert.equal((await first).version, 1);
});

test('a push whose lease expired by a clock jump is renewed, not reclaimed', async (t) => {
  const { deps, push, running, advance } = await benchOf(t, 0);
  const leases = new Leases(deps);
  const pushes = new PushJobs({ ...deps, leases });
  t.after(() => pushes.stop());
  const rest = Promise.withResolvers<void>();
  const pushed = pushes.run({ ...push, bytes: bytes('{"id":1}\n', rest.promise) });
  const held = await running();
  const engine = new Engine({
    ...deps,
    leases,
    workflowsDirectory: '/nowhere',
    environment: new Map(),
    secrets: async () => new Map(),
    capacity: 1,
    perTeam: 1,
  });
  // The row exists before its holder knows about it.
  while (!leases.renew(held)) await new Promise(setImmediate);
  advance(60_000);
  await engine.reap({ nodeId: null });
  assert.equal(leases.renew({ ...held, jobId: 'job_other' }), false);
  rest.resolve();
  assert.equal((await pushed).version, 1);
});

test('a push beyond the maximum number of waiting pushes is refused immediately', async (t) => {
  const { pushes, push, running } = await benchOf(t, 60_000);
  const rest = Promise.withResolvers<void>();
  const first = pushes.run({ ...push, bytes: bytes('{"id":1}\n', rest.promise) });
  await running();
  const gone = new AbortController();
  const waiting = Array.from({ length: 64 }, () => pushes.run({ ...push, sender: gone.signal }));
  const all = Promise.allSettled(waiting);
  await assert.rejects(pushes.run(push), problem('push_busy'));
  gone.abort(new InterruptedError('gone'));
  await all;
  rest.resolve();
  assert.equal((await first).version, 1);
});

test('the waiting pushes of one team leave room for those of another', async (t) => {
  const { store, pushes, push, running } = await benchOf(t, 60_000);
  const [rest, restOfOther] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = pushes.run({ ...push, bytes: bytes('{"id":1}\n', rest.promise) });
  await running();
  const gone = new AbortController();
  const all = Promise.allSettled(
    Array.from({ length: 64 }, () => pushes.run({ ...push, sender: gone.signal })),
  );
  await assert.rejects(pushes.run(push), problem('push_busy'));

  const at = await makeWorkflow(store, { team: 'other', source: { type: 'push' } });
  const asked = Promise.withResolvers<void>();
  const held = bytes('{"id":1}\n', restOfOther.promise, () => asked.resolve());
  const firstOfOther = pushes.run({ ...push, ...at, bytes: held });
  await asked.promise;
  const secondOfOther = pushes.run({ ...push, ...at, bytes: bytes('{"id":2}\n') });
  restOfOther.resolve();
  assert.deepEqual([(await firstOfOther).version, (await secondOfOther).version], [1, 2]);
  gone.abort(new InterruptedError('gone'));
  await all;
  rest.resolve();
  await first;
});

test('a push whose client disconnects while it waits starts no job', async (t) => {
  const { pushes, push, running } = await benchOf(t, 10_000);
  const rest = Promise.withResolvers<void>();
  const first = pushes.run({ ...push, bytes: bytes('{"id":1}\n', rest.promise) });
  await running();
  const gone = new AbortController();
  const read = () => assert.fail('The body was read');
  const second = pushes.run({ ...push, bytes: bytes('', undefined, read), sender: gone.signal });
  const refused = assert.rejects(second, InterruptedError);
  gone.abort(new InterruptedError('gone'));
  await refused;
  rest.resolve();
  assert.equal((await first).version, 1);
});

test('concurrent pushes with the same idempotency key are published once', async (t) => {
  const { pushes, push, running } = await benchOf(t, 10_000);
  const rest = Promise.withResolvers<void>();
  const keyed = { ...push, idempotencyKey: 'k' };
  const first = pushes.run({ ...keyed, bytes: bytes('{"id":1}\n', rest.promise) });
  await running();
  const twin = pushes.run({ ...keyed, bytes: bytes('{"id":1}\n') });
  const other = pushes.run({ ...keyed, bytes: bytes('{"id":2}\n') });
  rest.resolve();
  assert.deepEqual(await twin, await first);
  await assert.rejects(other, problem('idempotency_key_reused'));
});

test('a push keeps its lease however long its client takes', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { store, pushes, push, advance } = await benchOf(t, 0);
  const rest = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const pushing = pushes.run({ ...push, bytes: bytes('{"id":1}\n', rest.promise, asked.resolve) });
  await asked.promise;
  for (let beats = 0; beats < 5; beats++) {
    advance(LEASE_MS - 1);
    t.mock.timers.tick(LEASE_MS / 3);
    // Writes are queued in order: when this one is done, so is the heartbeat.
    await store.instance.claim({ name: `after-beat-${beats}`, value: '' });
    assert.deepEqual(await store.jobs.abandoned({ nodeId: null }), []);
  }
  rest.resolve();
  assert.equal((await pushing).version, 1);
});

test('a push that was reclaimed ends at its next heartbeat and publishes nothing', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { store, pushes, push, running } = await benchOf(t, 0);
  const asked = Promise.withResolvers<void>();
  const pushing = pushes.run({ ...push, bytes: bytes('{"id":1}\n', new Promise(() => {}), asked.resolve) });
  await asked.promise;
  const held = await running();
  assert.equal((await store.jobs.reclaim({ held, nodeId: 'local', error: 'taken' }))?.state, 'failed');
  t.mock.timers.tick(LEASE_MS / 3);
  await assert.rejects(pushing, problem('database_unavailable'));
  assert.equal((await store.records.version(push))?.number, 0);
});

test('stopping fails running pushes as lost, and refuses new ones', async (t) => {
  const { store, pushes, push, running } = await benchOf(t, 0);
  const pushing = pushes.run({ ...push, bytes: bytes('{"id":1}\n', new Promise(() => {})) });
  const { teamId, jobId } = await running();
  const refused = assert.rejects(pushing, InterruptedError);
  await pushes.stop();
  await refused;
  const job = await store.jobs.get({ teamId, id: jobId });
  assert.deepEqual([job?.state, job?.reason], ['failed', 'lost']);
  await assert.rejects(pushes.run(push), InterruptedError);
  await pushes.stop();
});

test('stopping does not wait for an unavailable database', { timeout: 10_000 }, async (t) => {
  const { deps, store, push } = await benchOf(t, 0);
  const asked = Promise.withResolvers<void>();
  const stage: Store['records']['stage'] = () => {
    asked.resolve();
    return Promise.reject(new Problem('database_unavailable'));
  };
  const pushes = new PushJobs({ ...deps, store: { ...store, records: { ...store.records, stage } } });
  const refused = assert.rejects(pushes.run(push));
  await asked.promise;
  const from = performance.now();
  await pushes.stop();
  await refused;
  assert.ok(performance.now() - from < 5_000);
});

test('a push whose lease the database cannot renew is stopped, and the next push starts right away', async (t) => {
  const { deps, store, push, running } = await benchOf(t, 0);
  let away = true;
  const beat: Store['jobs']['beat'] = (input) =>
    away ? Promise.reject(new Problem('database_unavailable')) : store.jobs.beat(input);
  const absent = { ...store, jobs: { ...store.jobs, beat } };
  const leases = new Leases({ ...deps, store: absent, leaseMs: 600 });
  const pushes = new PushJobs({ ...deps, store: absent, leases });
  t.after(() => pushes.stop());
  const pushing = pushes.run({ ...push, bytes: bytes('{"id":1}\n', new Promise(() => {})) });
  const refused = assert.rejects(pushing, problem('database_unavailable'));
  const { teamId, jobId } = await running();
  await refused;
  away = false;
  assert.equal((await pushes.run(push)).version, 1);
  const job = await store.jobs.get({ teamId, id: jobId });
  assert.deepEqual([job?.state, job?.reason], ['failed', 'lost']);
  assert.match(job?.error ?? '', /^The push was stopped because the database could not renew its lease/);
});

test('logs the records that a push skips', async (t) => {
  const { deps, store, push } = await benchOf(t, 0);
  const at = await makeWorkflow(store, { id: 'skipping', source: { type: 'push' }, onInvalid: 'skip' });
  const skipped: object[] = [];
  const warn = (fields: object, message: string) =>
    void (message === 'record.skipped' && skipped.push(fields));
  const log: Logger = { ...silentLogger, warn, child: () => log };
  const pushes = new PushJobs({ ...deps, log });
  t.after(() => pushes.stop());
  await pushes.run({ ...push, ...at, bytes: bytes('{"id":1}\n{"name":"Ada"}\n') });
  assert.partialDeepStrictEqual(skipped, [{ position: 2, field: 'id' }]);
});

test('canceling a push ends it immediately and publishes nothing', async (t) => {
  const { store, pushes, push, running } = await benchOf(t, 0);
  const asked = Promise.withResolvers<void>();
  const pushing = pushes.run({ ...push, bytes: bytes('{"id":1}\n', new Promise(() => {}), asked.resolve) });
  await asked.promise;
  const { teamId, jobId } = await running();
  const refused = assert.rejects(pushing, problem('push_canceled'));
  await store.jobs.cancel({ teamId, id: jobId, by: 'Canceled by the test' });
  await refused;
  const job = await store.jobs.get({ teamId, id: jobId });
  assert.deepEqual([job?.state, job?.error], ['canceled', 'Canceled by the test']);
  assert.equal((await store.records.version(push))?.number, 0);
  const lines = await store.jobs.log({ teamId, jobId, attempt: 1, afterSeq: 0, limit: 10 });
  assert.deepEqual(
    lines.map(({ text }) => text),
    ['Push started: ndjson', 'Canceled: the push was stopped and nothing was published'],
  );
});

test('a push that was canceled before publishing gets that as its error', async (t) => {
  const { deps, store, push, running } = await benchOf(t, 0);
  const rest = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const beat = () => Promise.reject(new Problem('database_unavailable'));
  const deaf = { ...store, jobs: { ...store.jobs, beat } };
  const others = new PushJobs({ ...deps, store: deaf });
  t.after(() => others.stop());
  const pushing = others.run({ ...push, bytes: bytes('{"id":1}\n', rest.promise, asked.resolve) });
  await asked.promise;
  const { teamId, jobId } = await running();
  await store.jobs.cancel({ teamId, id: jobId, by: 'Canceled by the test' });
  rest.resolve();
  await assert.rejects(pushing, problem('push_canceled'));
  assert.equal((await store.jobs.get({ teamId, id: jobId }))?.state, 'canceled');
});

test('the progress of a push can be read while it runs', async (t) => {
  const { store, pushes, push, running } = await benchOf(t, 0);
  const rest = Promise.withResolvers<void>();
  // Four of these records fill a batch.
  const many = `{"id":1,"text":"${'x'.repeat(300_000)}"}\n`.repeat(5);
  const pushing = pushes.run({ ...push, bytes: bytes(many, rest.promise) });
  const { teamId, jobId } = await running();
  for (;;) {
    const job = await store.jobs.get({ teamId, id: jobId });
    if (job?.progress?.records === 4) break;
    await new Promise(setImmediate);
  }
  rest.resolve();
  await pushing;
  const { progress } = (await store.jobs.get({ teamId, id: jobId })) ?? {};
  assert.deepEqual(progress, { records: 5, bytes: many.length, pages: null, message: null });
});
