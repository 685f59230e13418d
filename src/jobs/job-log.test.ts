/** The log and progress of a job, and the reason of a failure. */

import assert from 'node:assert/strict';
import { engineTest } from '../../test/support/jobs/engine.ts';
import { EXPECT_NOTHING } from '../model/quality/expect.ts';

engineTest('a job that logs nothing itself has a log of its start and end', async (bench) => {
  const { engine, queue, log, job } = bench;
  const { id } = await queue('silent', ['printf', '{"id":1}\\n{"id":2}']);
  await engine.tick();
  const lines = await log(id);
  assert.deepEqual(
    lines.map(({ seq }) => seq),
    [1, 2],
  );
  assert.match(lines[0]?.text ?? '', /^Attempt 1: the command printf runs as process \d+$/);
  assert.match(lines[1]?.text ?? '', /^The run succeeded after [\d.]+ s with 2 records$/);
  assert.deepEqual((await job(id)).progress, { records: 2, bytes: 17, pages: null, message: null });
});

engineTest(
  'the failure is the last line, and does not repeat the lines above',
  async ({ engine, queue, log, advance }) => {
    const { id } = await queue('failing', ['sh', '-c', 'echo no such table >&2; exit 3'], {
      retries: { max: 1, backoffMs: 5_000 },
    });
    await engine.tick();
    assert.deepEqual(
      (await log(id)).slice(1).map(({ text }) => text.replace(/at \d.*Z/, 'at …')),
      ['no such table', 'Failed (error): The command sh ended with exit code 3. Next attempt at … or later'],
    );
    advance(10_000);
    await engine.tick();
    assert.match((await log(id, 2)).at(-1)?.text ?? '', /^Failed \(error\): .*It will not be retried$/);
  },
);

engineTest('the log says why a source could not be started', async ({ engine, queue, log }) => {
  const { id } = await queue('missing', ['no-such-program']);
  await engine.tick();
  const [line, ...more] = await log(id);
  assert.match(line?.text ?? '', /^Failed \(error\): .*no-such-program/);
  assert.equal(more.length, 0);
});

engineTest(
  'a failure of an expectation is logged after the success of the run',
  async ({ engine, queue, log, job }) => {
    const { id } = await queue('empty', ['true'], { expect: EXPECT_NOTHING });
    await engine.tick();
    assert.equal((await job(id)).reason, 'guard');
    const lines = await log(id);
    assert.match(lines.at(-2)?.text ?? '', /^The run succeeded/);
    assert.match(lines.at(-1)?.text ?? '', /^Failed \(guard\): /);
  },
);

engineTest('progress and log can be read during a run', async ({ engine, queue, until, log }) => {
  const { id } = await queue('slow', ['sh', '-c', 'echo "{\\"id\\":1}"; echo reading >&2; exec sleep 600']);
  await engine.start();
  const { state, progress } = await until(id, (job) => job.progress?.records === 1);
  assert.deepEqual([state, progress?.bytes], ['running', 9]);
  assert.deepEqual((await log(id)).at(-1)?.text, 'reading');
});

engineTest('the log says that a job was released, and the next attempt has its own log', async (bench) => {
  const { engine, queue, running, log } = bench;
  const { id } = await queue('slow', ['sh', '-c', 'echo "{\\"id\\":1}"; exec sleep 600']);
  await engine.start();
  await running(id);
  await engine.stop();
  assert.match((await log(id)).at(-1)?.text ?? '', /^Released because the server is stopping/);
  assert.deepEqual(await log(id, 2), []);
});

const HOG = `
const held = [];
setInterval(() => held.push(Buffer.alloc(8_000_000, 1)), 20);
`;

engineTest('the error of a run that uses too much memory names the limit and its setting', async (bench) => {
  const { engine, queue, job, log } = bench;
  const { id } = await queue('hog', [process.execPath, '-e', HOG], {
    limits: { timeoutMs: 20_000, records: 10, memoryBytes: 150_000_000, outputBytes: 1_000_000 },
  });
  await engine.tick();
  const { state, reason, error } = await job(id);
  assert.deepEqual([state, reason], ['failed', 'memory']);
  assert.match(error ?? '', /limits\.memory.*150 MB/);
  assert.match((await log(id)).at(-1)?.text ?? '', /^Failed \(memory\): .*It will not be retried$/);
});

engineTest('the error of a run that writes too much names the limit and its setting', async (bench) => {
  const { engine, queue, job } = bench;
  const { id } = await queue('chatty', ['sh', '-c', 'while :; do echo "{\\"id\\":1}"; done'], {
    limits: { timeoutMs: 20_000, records: 10_000_000, memoryBytes: 512_000_000, outputBytes: 100_000 },
  });
  await engine.tick();
  const { state, reason, error } = await job(id);
  assert.deepEqual([state, reason], ['failed', 'output']);
  assert.match(error ?? '', /100 KB.*limits\.output/);
});
