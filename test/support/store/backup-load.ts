/** A server on SQLite that runs, delivers and is pushed to, so that a backup has something under way beside it. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { makePlace } from '../cli/place.ts';
import { call, KEY, queueAgainAndAgain, subscribe } from '../faults/crash.ts';
import { startReceiver } from '../receiver.ts';
import { type ServerProcess, startServerProcess } from '../server-process.ts';

export const RECORDS = 200;
/** Every record of a run carries the run's own number, so that a mixture of two runs shows. */
const SOURCE = `
const run = process.env.FLOWHOOK_JOB + '/' + process.env.FLOWHOOK_ATTEMPT;
for (let i = 0; i < ${RECORDS}; i++) console.log(JSON.stringify({ id: String(i), run }));
`;
const PULLED = `source: { type: command, command: [${JSON.stringify(process.execPath)}, source.mjs] }\n`;

interface Pushed {
  answered: number;
  etag: string;
}

/** Pushes the same ids with the number of the push in each, and notes the last that was answered. */
async function pushAgainAndAgain(server: ServerProcess, pushed: Pushed, signal: AbortSignal): Promise<void> {
  for (let n = pushed.answered + 1; !signal.aborted; n += 1) {
    const body = Array.from({ length: RECORDS }, (_, id) => ({ id: String(id), n }));
    const answer = await call(server, 'POST', '/v1/workflows/pushed/push', body).catch(() => undefined);
    if (answer === undefined) return;
    assert.equal(answer.status, 200, await answer.text());
    pushed.answered = n;
  }
}

/** Sets out a place whose server runs, delivers and is pushed to; resolves when a lot has happened. */
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
  const pushed: Pushed = { answered: 0, etag: '' };
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
