/** Erasing on one node while another node claims and writes. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { FencedError } from '../../model/error.ts';
import { silentLogger } from '../../observe/log.ts';
import {
  CLAIM,
  heldOf,
  makeJob,
  makeRunning,
  makeWorkflow,
  people,
  publishRun,
  readVersion,
  stageRecords,
} from '../conformance/setup.ts';
import { openReader, openStore } from '../open.ts';

const { url, drop } = await makeDatabase();
const options = { publicUrl: () => '', log: silentLogger };
const [here, there] = [await openStore(url, options), await openStore(url, options)];
after(async () => {
  await here.close();
  await there.close();
  await drop();
});

test('a job that is claimed during a suppression either reads the suppression or is retried', async () => {
  const at = await makeWorkflow(here, { team: 'suppressing' });
  for (let round = 0; round < 10; round += 1) {
    const job = await makeJob(here, at);
    const hash = `h${round}`;
    const [known] = await Promise.all([
      (async () => {
        let claimed = await there.jobs.claim(CLAIM);
        while (claimed.length === 0) claimed = await there.jobs.claim(CLAIM);
        const [{ job }] = claimed as [(typeof claimed)[0]];
        return {
          held: heldOf(job),
          hashes: await there.erasure.suppressed({ ...at, workflowId: '', limit: 100 }),
        };
      })(),
      here.erasure.suppress({ teamId: at.teamId, entries: [{ workflowId: '', kind: 'id', hash }] }),
    ]);
    const { state } = (await here.jobs.get({ teamId: at.teamId, id: job.id })) ?? {};
    assert.ok(known.hashes.some((row) => row.hash === hash) || state === 'retrying', `round ${round}`);
    await here.jobs.cancel({ teamId: at.teamId, id: job.id, by: 'test' });
    if (state === 'running') await here.jobs.endCanceled({ held: known.held });
  }
});

test('a batch that is staged during an erasure is written before the erasure or not at all', async () => {
  const at = await makeWorkflow(here, { team: 'erasing' });
  await publishRun(here, at, { a: 'Ada', b: 'Bob' });
  const held = await makeRunning(here, at);
  const [staged, removed] = await Promise.allSettled([
    stageRecords(there, held, 'upsert', people({ a: 'Anna', c: 'Cid' })),
    here.erasure.remove({ ...at, seqs: [1] }),
  ]);
  assert.equal(removed.status, 'fulfilled');
  if (staged.status === 'rejected') assert.ok(staged.reason instanceof FencedError, String(staged.reason));
  assert.equal((await here.jobs.get({ teamId: at.teamId, id: held.jobId }))?.state, 'retrying');
  assert.deepEqual(await readVersion(here, { ...at, version: 1 }), [{ id: 'b', name: 'Bob' }]);
  await here.jobs.cancel({ teamId: at.teamId, id: held.jobId, by: 'test' });
});

test('a reader has its own connections', async () => {
  const at = await makeWorkflow(here, { team: 'reading' });
  await publishRun(here, at, { a: 'Ada', é: 'Émile' });
  const held = await makeRunning(here, at);
  const reader = await openReader(url);
  try {
    assert.equal((await reader.records.version(at))?.total, 2);
    const { json, done } = await reader.records.page({
      ...at,
      version: 1,
      afterSeq: 0,
      rows: 9,
      separator: '\n',
      lead: '>',
    });
    assert.equal(Buffer.from(json).toString(), '>{"id":"a","name":"Ada"}\n{"id":"é","name":"Émile"}');
    assert.ok(done);
    const { rows } = await reader.records.compare({ held, ids: ['é', 'x'] });
    assert.deepEqual(
      rows.map(({ id, seq }) => [id, seq]),
      [['é', 2]],
    );
  } finally {
    await reader.close();
  }
});
