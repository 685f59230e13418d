/** What an attempt reports while it runs: progress and log. */
import assert from 'node:assert/strict';
import { type AttemptLease, type LogLine, logLineBytes } from '../../model/job.ts';
import type { Store } from '../store.ts';
import {
  caseWith,
  claimOne,
  expecting,
  failAttempt,
  jobOf,
  makeRunning,
  makeWorkflow,
  type Open,
  publish,
  publishRun,
} from './setup.ts';

const MIB = 1_048_576;

export function testJobLog(open: Open): void {
  const it = caseWith(open);

  it('stores the lines of an attempt, and returns them in pages', async ({ store }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    const all = lines(1, 50, 'a line, “quoted”\nand broken');
    for (let start = 0; start < all.length; start += 7) {
      await store.jobs.report({ held, lines: all.slice(start, start + 7) });
    }
    assert.deepEqual(await readLog(store, held, 9), all);
    assert.deepEqual(await log(store, held, { afterSeq: 40, limit: 3 }), all.slice(40, 43));
    assert.deepEqual(await log(store, held, { afterSeq: 50, limit: 3 }), []);
    assert.deepEqual(await readLog(store, { ...held, attempt: 2 }, 9), []);
    assert.deepEqual(await readLog(store, { ...held, teamId: 'team_x' }, 9), []);
  });

  it('stores a repeated report once', async ({ store }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    await store.jobs.report({ held, lines: lines(1, 3, 'x') });
    await store.jobs.report({ held, lines: lines(1, 3, 'x') });
    await store.jobs.report({ held, lines: lines(2, 4, 'x') });
    assert.deepEqual(await readLog(store, held, 9), lines(1, 5, 'x'));
  });

  it('stores the last report together with the end, whether the run is published, refused or canceled', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const progress = { records: 7, bytes: 70, pages: null, message: null };
    const ends = {
      guarded: { expected: { expect: expecting({ min: 1 }) } },
      unchanged: {},
      canceled: {},
    };
    for (const [outcome, changes] of Object.entries(ends)) {
      const held = await makeRunning(store, at);
      await store.jobs.report({ held, lines: lines(1, 1, 'x') });
      if (outcome === 'canceled') await store.jobs.cancel({ teamId: at.teamId, id: held.jobId, by: 'Ada' });
      const published = await publish(store, held, { ...changes, lines: lines(1, 3, 'x'), progress });
      assert.equal(published.outcome, outcome);
      assert.deepEqual(await readLog(store, held, 9), lines(1, 3, 'x'));
      assert.deepEqual((await jobOf(store, held)).progress, progress);
      if (outcome === 'guarded') await failAttempt(store, held);
    }
  });

  it('keeps the first and the last MiB of a long log for reports of any size', async ({ store }) => {
    for (const [id, text, count, atOnce] of [
      ['short', 'x'.repeat(99), 30_000, 4_000],
      ['long', 'y'.repeat(30_000), 120, 3],
      ['once', 'z'.repeat(1_000), 3_000, 3_000],
    ] as const) {
      const held = await makeRunning(store, await makeWorkflow(store, { id }));
      const all = lines(1, count, text);
      for (let start = 0; start < count; start += atOnce) {
        await store.jobs.report({ held, lines: all.slice(start, start + atOnce) });
      }
      const kept = await readLog(store, held, 10_000);
      const gap = kept.findIndex((line, place) => line.seq !== place + 1);
      const [head, tail] = [kept.slice(0, gap), kept.slice(gap)];
      assert.deepEqual(kept, [...all.slice(0, head.length), ...all.slice(count - tail.length)]);
      assert.ok(
        bytesOf(head) <= MIB && bytesOf(head) > MIB - 40_000,
        `${id}: ${bytesOf(head)} in the beginning`,
      );
      assert.ok(bytesOf(tail) >= MIB && bytesOf(tail) < MIB + 80_000, `${id}: ${bytesOf(tail)} in the end`);
    }
  });

  it('replaces everything after the first MiB on request', async ({ store }) => {
    const held = await makeRunning(store, await makeWorkflow(store));
    await store.jobs.report({ held, lines: lines(1, 1_500, 'x'.repeat(1_000)) });
    const kept = Math.floor(MIB / logLineBytes('x'.repeat(1_000)));
    const before = await readLog(store, held, 1_000);
    assert.equal(before.length, 1_500);
    const last = lines(9_000, 3, 'the end');
    for (let sent = 0; sent < 2; sent++) await store.jobs.report({ held, lines: last, restart: true });
    const after = await readLog(store, held, 1_000);
    assert.deepEqual(
      after.map(({ seq }) => seq),
      [...before.slice(0, kept), ...last].map(({ seq }) => seq),
    );
  });

  it('returns the last 15 lines of the last attempt that has any, and the name of a webhook', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const url = 'https://a.test';
    const input = { ...at, url, events: ['workflow_failed'], secret: '', limit: 9 };
    const made = await store.webhooks.subscribe({ ...input, name: 'Ops' });
    assert.ok('webhook' in made);
    const webhook = { id: made.webhook.id, name: 'Ops' };
    const first = await makeRunning(store, at);
    const { teamId, jobId } = first;
    const read = (of: string | null = jobId) =>
      store.decisions.forPeople({ teamId, webhookId: webhook.id, jobId: of });
    assert.deepEqual(await read(), { webhook, log: [] });
    await store.jobs.report({ held: first, lines: lines(1, 2, 'one') });
    await store.jobs.release({ held: [first] });
    const second = await claimOne(store);
    assert.deepEqual((await read()).log, ['one', 'one']);
    const all = lines(1, 3_000, '').map((line) => ({ ...line, text: `${line.seq} ${'x'.repeat(999)}` }));
    await store.jobs.report({ held: second, lines: all });
    assert.deepEqual(
      (await read()).log,
      all.slice(-15).map(({ text }) => text),
    );
    assert.deepEqual((await read(null)).log, []);
    const unknown = await store.decisions.forPeople({ teamId, webhookId: 'wh_x', jobId });
    assert.deepEqual(unknown.webhook, { id: 'wh_x', name: null });
    assert.deepEqual(
      (await store.decisions.forPeople({ teamId: 'team_x', webhookId: webhook.id, jobId })).log,
      [],
    );
  });

  it('separates the logs of attempts', async ({ store }) => {
    const first = await makeRunning(store, await makeWorkflow(store));
    await store.jobs.report({ held: first, lines: lines(1, 2, 'one') });
    await store.jobs.release({ held: [first] });
    const second = await claimOne(store);
    await store.jobs.report({ held: second, lines: lines(1, 1, 'two') });
    assert.deepEqual(await readLog(store, first, 9), lines(1, 2, 'one'));
    assert.deepEqual(await readLog(store, second, 9), lines(1, 1, 'two'));
  });

  it('shows progress while a job runs, and only its counts after the attempt', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    assert.equal((await jobOf(store, held)).progress, null);
    const progress = { records: 5, bytes: 70, pages: 2, message: 'Page 2 of 9' };
    await store.jobs.report({ held, progress });
    assert.deepEqual((await jobOf(store, held)).progress, progress);
    await store.jobs.report({ held, lines: lines(1, 1, 'x') });
    assert.deepEqual((await jobOf(store, held)).progress, progress);
    await failAttempt(store, held, { follows: { state: 'retrying', runAt: store.now() } });
    assert.deepEqual((await jobOf(store, held)).progress, { ...progress, message: null });
    const again = await claimOne(store);
    assert.equal((await jobOf(store, again)).progress, null);
    await store.jobs.report({ held: again, progress });
    await publish(store, again);
    assert.deepEqual((await jobOf(store, again)).progress, { ...progress, message: null });
    await publishRun(store, at, { a: 'Ada' });
  });
}

/** `count` lines, numbered from `first`. */
function lines(first: number, count: number, text: string): LogLine[] {
  return Array.from({ length: count }, (_, n) => ({
    seq: first + n,
    at: 1_000 + first + n,
    level: (first + n) % 2 === 0 ? 'info' : 'error',
    text,
  }));
}

function log(
  store: Store,
  { teamId, jobId, attempt }: AttemptLease,
  page: { afterSeq: number; limit: number },
) {
  return store.jobs.log({ teamId, jobId, attempt, ...page });
}

async function readLog(store: Store, held: AttemptLease, limit: number): Promise<LogLine[]> {
  const all: LogLine[] = [];
  for (;;) {
    const page = await log(store, held, { afterSeq: all.at(-1)?.seq ?? 0, limit });
    assert.ok(page.length <= limit);
    if (page.length === 0) return all;
    all.push(...page);
  }
}

function bytesOf(some: readonly LogLine[]): number {
  return some.reduce((bytes, line) => bytes + logLineBytes(line.text), 0);
}
