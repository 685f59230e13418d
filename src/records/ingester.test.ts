/** The main thread's side of ingestion, with fake threads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { Problem } from '../model/error.ts';
import { EXPECT_NOTHING } from '../model/quality/expect.ts';
import { silentLogger } from '../observe/log.ts';
import { Ingester } from './ingester.ts';

const BEGIN = {
  held: { teamId: 'team', jobId: 'job', attempt: 1 },
  settings: { key: [], mode: 'replace', onInvalid: 'fail', limits: { records: 1 }, expect: EXPECT_NOTHING },
} as const;

/** A thread that runs the code `does` for every message. */
function thread(does: string): Worker {
  return new Worker(
    `const { parentPort } = require('node:worker_threads');
     parentPort.on('message', (message) => { ${does} });`,
    { eval: true },
  );
}

test('rejects the runs of a dead thread, and starts another for the next run', async () => {
  const threads = [
    thread('if (message.plan) throw new Error("out of luck")'),
    thread(
      'if (message.close) parentPort.close(); else parentPort.postMessage({ run: message.run, planned: 7 })',
    ),
  ];
  const ingester = new Ingester({
    databaseUrl: '',
    log: silentLogger,
    open: () => threads.shift() as Worker,
  });
  const [one, two] = [begin(ingester), begin(ingester)];
  const said = /^The thread that reads records has ended: out of luck$/;
  await Promise.all(
    [one, two].map((run) => assert.rejects(run.plan(['{}'], Promise.resolve()), { message: said })),
  );
  await assert.rejects(one.plan([], Promise.resolve()), { message: said });
  one.end();
  assert.equal(await begin(ingester).plan(['{}'], Promise.resolve()), 7);
  await ingester.close();
});

test('teams take turns on the thread, however many batches of one team are waiting', async (t) => {
  const asked: number[] = [];
  const worker = thread('');
  t.after(() => worker.terminate());
  worker.postMessage = ({ run, plan }: { run: number; plan?: unknown }) => void (plan && asked.push(run));
  const ingester = new Ingester({ databaseUrl: '', log: silentLogger, open: () => worker });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  let answered = 0;
  const answer = async () => {
    worker.emit('message', { run: asked[answered], planned: {} });
    answered += 1;
    await settle();
  };
  const plan = (teamId: string) =>
    ingester
      .begin({ held: { ...BEGIN.held, teamId }, settings: { ...BEGIN.settings, key: [] } })
      .plan(['{}'], Promise.resolve());
  const flood = Array.from({ length: 10 }, () => plan('flood'));
  await settle();
  assert.deepEqual(asked, [1], 'a team has one batch on the thread');
  const small = plan('small');
  await settle();
  assert.deepEqual(asked, [1, 11]);
  while (answered < asked.length) await answer();
  await small;
  await Promise.all(flood);
  assert.deepEqual(asked, [1, 11, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test('starts no thread before the first run, or after `close`', async () => {
  const ingester = new Ingester({ databaseUrl: 'nowhere', log: silentLogger, open: () => assert.fail() });
  await ingester.close();
  await ingester.close();
  assert.throws(() => begin(ingester), Problem);
});

function begin(ingester: Ingester) {
  return ingester.begin({ ...BEGIN, settings: { ...BEGIN.settings, key: [] } });
}
