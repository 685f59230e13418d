/**
 * Records of 1 MiB each, from a command to the reader, complete and unchanged. `LARGE_RECORDS=600` is the long form:
 * more than 512 MiB, beyond which SQLite returns no text and no error.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { startService } from '../support/service.ts';

const RECORDS = Number(process.env.LARGE_RECORDS ?? 100);
const MIB = 1_048_576;

/** Record `n` as it is written and read: 1 MiB including its id, with a different text for each record. */
function record(n: number): string {
  const head = `{"id":"${n}","text":"${n}-`;
  return `${head}${'é'.repeat((MIB - 64) / 2)}${'x'.repeat(62 - head.length)}"}`;
}

const PROGRAM = `
const MIB = ${MIB};
${record}
for (let n = 0; n < ${RECORDS}; n++) {
  if (!process.stdout.write(record(n) + '\\n')) await new Promise((drained) => process.stdout.once('drain', drained));
}
`;

test(`reads ${RECORDS} records of 1 MiB back complete and unchanged`, { timeout: 120_000 }, async (t) => {
  const service = await startService({
    workflows: {
      'default/large.yaml': `source: { type: command, command: ["${process.execPath}", large.mjs] }`,
      'default/large.mjs': PROGRAM,
    },
  });
  t.after(() => service.stop());
  const fromMs = performance.now();
  const queued = await service.call('POST', '/v1/workflows/large/queue');
  assert.equal(queued.status, 200);
  await service.engine.tick();
  const job = await service.call('GET', `/v1/jobs/${queued.headers.get('x-job-id')}`);
  assert.equal((job.body as { state: string }).state, 'finished', JSON.stringify(job.body));
  t.diagnostic(`ingested after ${Math.round(performance.now() - fromMs)} ms`);

  const expected = createHash('sha256');
  for (let n = 0; n < RECORDS; n++) expected.update(`${n === 0 ? '[' : ','}${record(n)}`);
  expected.update(']');
  const found = createHash('sha256');
  const answer = await fetch(`${service.url}/v1/workflows/large/data`, {
    headers: { 'x-api-key': service.key },
  });
  assert.equal(answer.status, 200);
  let bytes = 0;
  for await (const chunk of answer.body as ReadableStream<Uint8Array>) {
    bytes += chunk.length;
    found.update(chunk);
  }
  assert.ok(bytes > RECORDS * (MIB - 100));
  assert.equal(found.digest('hex'), expected.digest('hex'));
  t.diagnostic(`read after ${Math.round(performance.now() - fromMs)} ms`);
});
