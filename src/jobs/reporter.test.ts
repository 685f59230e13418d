/** What is written of a log and of progress, and when. The tests move the timers. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { FencedError } from '../model/error.ts';
import { type LogLine, logLineBytes } from '../model/job.ts';
import { silentLogger } from '../observe/log.ts';
import { Reporter } from './reporter.ts';

type Report = Parameters<ConstructorParameters<typeof Reporter>[0]['report']>[0];

const MIB = 1 << 20;

function reporterOf(t: TestContext, write: (report: Report) => Promise<void> = async () => {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const reports: Report[] = [];
  const reporter = new Reporter({
    report: async (report) => {
      reports.push(report);
      await write(report);
    },
    now: () => 1_000,
    log: silentLogger,
  });
  t.after(() => reporter.stop());
  return {
    reporter,
    reports,
    /** Advances the timers, and lets pending promises settle. */
    async pass(ms: number) {
      t.mock.timers.tick(ms);
      await new Promise(setImmediate);
    },
  };
}

function bytesOf(lines: readonly LogLine[] = []): number {
  return lines.reduce((bytes, { text }) => bytes + logLineBytes(text), 0);
}

test('writes one report a second, and none when nothing has changed', async (t) => {
  const { reporter, reports, pass } = reporterOf(t);
  reporter.line('info', 'one');
  reporter.line('warn', 'two');
  reporter.progress({ records: 1, bytes: 10 });
  await pass(200);
  assert.deepEqual(reports, [
    {
      lines: [
        { seq: 1, at: 1_000, level: 'info', text: 'one' },
        { seq: 2, at: 1_000, level: 'warn', text: 'two' },
      ],
      progress: { records: 1, bytes: 10, pages: null, message: null },
    },
  ]);
  await pass(5_000);
  reporter.progress({ records: 1 });
  await pass(5_000);
  assert.equal(reports.length, 1);
  for (let n = 2; n < 50; n++) reporter.progress({ records: n });
  await pass(1_000);
  assert.deepEqual(reports.slice(1), [{ progress: { records: 49, bytes: 10, pages: null, message: null } }]);
});

test('flushing writes the rest immediately, and may be repeated for later lines', async (t) => {
  const { reporter, reports } = reporterOf(t);
  reporter.line('info', 'one');
  await reporter.flush();
  await reporter.flush();
  reporter.line('error', 'two');
  await reporter.flush();
  assert.deepEqual(
    reports.map(({ lines }) => lines?.map(({ text }) => text)),
    [['one'], ['two']],
  );
});

test('for a flood, writes the first MiB, then a little each second, and finally the last MiB', async (t) => {
  const { reporter, reports, pass } = reporterOf(t);
  const text = 'x'.repeat(1_000);
  let said = 0;
  const flood = (lines: number) => {
    for (let n = 0; n < lines; n++) reporter.line('info', `${++said} ${text}`);
  };
  /** The lines written since the last call, at most a quarter of a MiB per report. */
  const written = () => {
    const found = reports.splice(0);
    assert.ok(found.every(({ lines }) => bytesOf(lines) <= MIB / 4));
    return { lines: found.flatMap(({ lines = [] }) => lines), restarts: found.map(({ restart }) => restart) };
  };
  flood(10_000);
  await pass(200);
  const { lines: head } = written();
  assert.ok(bytesOf(head) <= MIB + 65_536 && bytesOf(head) > MIB, `${bytesOf(head)} bytes`);
  assert.equal(head[900]?.seq, 901);
  for (let second = 0; second < 5; second++) {
    flood(10_000);
    await pass(1_000);
    const { lines } = written();
    assert.ok(lines.length > 10 && bytesOf(lines) <= 65_536);
    assert.equal(lines.at(-1)?.seq, said);
  }
  flood(10);
  await reporter.flush();
  const { lines, restarts } = written();
  assert.deepEqual(restarts, [true, ...restarts.slice(1).map(() => undefined)]);
  assert.ok(bytesOf(lines) <= MIB && bytesOf(lines) > MIB - 2_000);
  assert.deepEqual(
    lines.map(({ seq }) => seq),
    Array.from({ length: lines.length }, (_, n) => said - lines.length + 1 + n),
  );
  reporter.line('info', 'the end');
  await reporter.flush();
  assert.deepEqual([reports.at(-1)?.lines?.length, reports.at(-1)?.restart], [1, undefined]);
});

test('a log slightly longer than a MiB is written completely without starting over', async (t) => {
  const { reporter, reports, pass } = reporterOf(t);
  const text = 'x'.repeat(1_000);
  for (let n = 0; n < 1_000; n++) reporter.line('info', text);
  await pass(200);
  for (let n = 0; n < 10; n++) reporter.line('info', text);
  await pass(1_000);
  for (let n = 0; n < 100; n++) reporter.line('info', text);
  await reporter.flush();
  assert.ok(reports.every(({ restart }) => restart === undefined));
  assert.deepEqual(
    reports.flatMap(({ lines = [] }) => lines).map(({ seq }) => seq),
    Array.from({ length: 1_110 }, (_, n) => n + 1),
  );
});

test('short lines count with their overhead, and long lines are cut', async (t) => {
  const { reporter, reports } = reporterOf(t);
  reporter.line('info', 'y'.repeat(100_000));
  for (let n = 0; n < 100_000; n++) reporter.line('info', '');
  await reporter.flush();
  assert.equal(reports[0]?.lines?.[0]?.text.length, 8_192);
  for (const { lines = [] } of reports) assert.ok(lines.length < 45_000, `${lines.length}`);
  assert.equal(reports.at(-1)?.lines?.at(-1)?.seq, 100_001);
});

test('a report that fails is repeated, and one that hangs does not delay the end', async (t) => {
  let response: Promise<void> = Promise.reject(new Error('away'));
  const { reporter, reports, pass } = reporterOf(t, () => response);
  reporter.line('info', 'one');
  await pass(200);
  response = new Promise(() => {});
  await pass(1_000);
  assert.deepEqual(reports[1], reports[0]);
  reporter.line('info', 'two');
  const flushed = reporter.flush();
  await pass(2_000);
  await flushed;
  assert.equal(reports.length, 2);
});

test('an attempt that was fenced writes nothing more', async (t) => {
  const { reporter, reports, pass } = reporterOf(t, () => Promise.reject(new FencedError('taken')));
  reporter.line('info', 'one');
  await pass(200);
  reporter.line('info', 'two');
  await pass(1_000);
  await reporter.flush();
  assert.equal(reports.length, 1);
});

test('the last lines are written by the call that ends the attempt, and again if it fails', async (t) => {
  const { reporter, reports } = reporterOf(t);
  reporter.line('info', 'one');
  reporter.progress({ records: 1 });
  const last = { seq: 1, at: 1_000, level: 'info', text: 'one' };
  const progress = { records: 1, bytes: 0, pages: null, message: null };
  const failing = reporter.last(async (report) => {
    assert.deepEqual(report, { lines: [last], progress });
    throw new Error('The database is away');
  });
  await assert.rejects(failing, /away/);
  assert.equal(await reporter.last(async ({ lines }) => lines?.length), 1);
  await reporter.flush();
  assert.deepEqual(reports, []);
  for (let n = 0; n < 400; n += 1) reporter.line('info', 'x'.repeat(1_000));
  assert.deepEqual(await reporter.last(async (report) => report), {});
  assert.equal(reports.flatMap(({ lines = [] }) => lines).length, 400);
});

test('lines are also reported while the call that ends the attempt waits for the database', async (t) => {
  const { reporter, reports, pass } = reporterOf(t);
  reporter.line('info', 'one');
  const ending = Promise.withResolvers<void>();
  const ended = reporter.last(() => ending.promise);
  await pass(200);
  assert.deepEqual(
    reports.flatMap(({ lines = [] }) => lines.map(({ text }) => text)),
    ['one'],
  );
  reporter.line('error', 'two');
  ending.resolve();
  await ended;
  await reporter.flush();
  assert.equal(reports.at(-1)?.lines?.[0]?.text, 'two');
});
