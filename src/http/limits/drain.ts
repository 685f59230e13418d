/** Graceful shutdown of the server: no new connections, accepted requests are answered, and late ones are cut off. */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { App } from '../server/app.ts';
import type { InFlight } from './in-flight.ts';

/** How long, once nothing is in flight, a client that has sent half a request has for the other half. */
const HALF_SENT_MS = 750;
/**
 * Turns of the event loop before idle connections are closed: each reads all that has arrived, but the first may be
 * past that.
 */
const TURNS = 4;

/**
 * Closes the application: the listener and idle connections as soon as all input that has arrived is read.
 *
 * @param input.withinMs how long requests in flight may take
 * @returns how many were cut off
 */
export async function drain(input: {
  app: Pick<App, 'close' | 'server'>;
  inFlight: InFlight;
  withinMs: number;
}): Promise<{ cut: number }> {
  const { app, inFlight, withinMs } = input;
  const over = new AbortController();
  const { signal } = over;
  const resting = async () => {
    do {
      await inFlight.empty();
      await pause(HALF_SENT_MS, undefined, { signal });
    } while (inFlight.size > 0);
  };
  inFlight.drain();
  // A connection whose next request has arrived but is not read yet looks idle; on a busy node most of them do.
  for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
  const closed = app.close().finally(() => over.abort());
  const late = pause(withinMs, true, { signal }).catch(() => false);
  const isLate = await Promise.race([closed.then(() => false), late, resting().then(no, no)]);
  const cut = isLate ? inFlight.cut() : 0;
  app.server.closeAllConnections();
  await closed;
  return { cut };
}

const no = () => false;
