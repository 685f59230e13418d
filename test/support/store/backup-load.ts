/** A server on SQLite with running jobs, deliveries and pushes, for backups under load. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { makePlace } from '../cli/place.ts';
import { call, KEY, queueAgainAndAgain, subscribe } from '../faults/crash.ts';
import { startReceiver } from '../receiver.ts';
import { type ServerProcess, startServerProcess } from '../server-process.ts';

export const RECORDS = 200;
/** Every record contains the id of its run, so that a mixture of two runs is visible. */
const SOURCE = `
const run = process.env.FLOWHOOK_JOB + '/' + process.env.FLOWHOOK_ATTEMPT;
for (let i = 0; i < ${RECORDS}; i++) console.log(JSON.stringify({ id: String(i), run }));
`;
const PULLED = `source: { type: command, command: [${JSON.stringify(process.execPath)}, source.mjs] }\n`;

interface Pushed {
  /** The number of the last push that succeeded. */
  last: number;
  etag: string;
}

/** Pushes the same ids repeatedly, with the number of the push in each record. */
async function pushAgainAndAgain(server: ServerProcess, pushed: Pushed, signal: AbortSignal): Promise<void> {
  for (let n = pushed.last + 1; !signal.aborted; n += 1) {
    const body = Array.from({ length: RECORDS }, (_, id) => ({ id: String(id), n }));
    const response = await call(server, 'POST', '/v1/workflows/pushed/push', body).catch(() => undefined);
    if (response === undefined) return;
    assert.equal(response.status, 200, await response.text());
    pushed.last = n;
  }
}

/** Starts the server and its load. Resolves after 40 runs. */
export async function underLoad(t: TestContext) {
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const place = await makePlace(
    t,
    {
      'default/source.mjs': SOURCE,
      'default/one.yaml': PULLED,
      'default/two.yaml': PULLED,
      'default/pushed.yaml': 'source: { type: push }\n',
    },
    false,
  );
  Object.assign(place.environment, {
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
    FLOWHOOK_ALLOW_NETWORKS: 'loopback',
    FLOWHOOK_PORT: '0',
  });
  const server = await startServerProcess(place.environment);
  t.after(() => server.kill());
  for (const id of ['one', 'two', 'pushed']) await subscribe(server, id, receiver.url);
  const accepted = new Set<string>();
  const pushed: Pushed = { last: 0, etag: '' };
  const load = new AbortController();
  const working = [
    ...['one', 'two'].map((id) => queueAgainAndAgain(server, id, accepted, load.signal)),
    pushAgainAndAgain(server, pushed, load.signal),
  ];
  const finished = (types: readonly { event: { type: string } }[]) =>
    types.filter(({ event }) => event.type === 'workflow_finished').length;
  await receiver.until((received) => finished(received) >= 40, '40 runs', 60_000);
  const endLoad = async () => {
    load.abort();
    await Promise.all(working);
  };
  return { place, server, receiver, accepted, pushed, endLoad };
}
