/** Connections that the server closes while statements run on them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTcpProxy } from '../../../test/support/net/tcp-proxy.ts';
import { administer, makeDatabase, serverWithSocket } from '../../../test/support/postgres.ts';
import { Problem } from '../../model/error.ts';
import { silentLogger } from '../../observe/log.ts';
import { CLAIM, makeJob, makeWorkflow } from '../conformance/setup.ts';
import { openStore } from '../open.ts';

const ROUNDS = 20;

const isUnavailable = (error: unknown) => error instanceof Problem && error.code === 'database_unavailable';

test('calls whose connection is closed fail with database_unavailable, and later calls succeed', async () => {
  const { url, server, name, drop } = await makeDatabase();
  const store = await openStore(url, { publicUrl: () => '', log: silentLogger, own: true });
  const others: unknown[] = [];
  let refused = 0;
  let isOver = false;
  async function use(n: number): Promise<void> {
    while (!isOver) {
      const done = n % 2 === 0 ? store.teams.list({ limit: 100 }) : store.teams.ensure({ slug: `team-${n}` });
      await done.catch((error: unknown) => {
        refused += 1;
        if (!isUnavailable(error)) others.push(error);
      });
    }
  }
  const users = Array.from({ length: 12 }, (_, n) => use(n));
  for (let round = 0; round < ROUNDS; round++) {
    await administer(
      server,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
  }
  isOver = true;
  await Promise.all(users);
  assert.deepEqual(others, []);
  assert.ok(refused > 0, 'connections were closed while statements ran');
  assert.ok((await store.teams.list({ limit: 100 })).length > 0);
  await store.close();
  await drop();
});

test('a claim rejects if the result of a commit is lost, because its jobs may be running', async (t) => {
  const { url, drop } = await makeDatabase();
  const proxy = await startTcpProxy((await serverWithSocket()).socketPath);
  const through = new URL(url);
  through.host = `127.0.0.1:${proxy.port}`;
  through.search = '';
  const store = await openStore(through.href, { publicUrl: () => '', log: silentLogger });
  t.after(async () => {
    await store.close();
    proxy.stop();
    await drop();
  });
  for (const team of ['one', 'other']) await makeJob(store, await makeWorkflow(store, { team }));
  proxy.loseAnswerTo('commit\0', 2);
  await assert.rejects(store.jobs.claim(CLAIM), isUnavailable);
  const unanswered = await store.jobs.abandoned({ nodeId: CLAIM.nodeId });
  assert.equal(unanswered.length, 2, 'both commits took effect, and the node can find and release both jobs');
});
