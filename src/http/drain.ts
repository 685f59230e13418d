/** The end of the wire: no new connections, what was accepted is answered, and what is not done in time is cut. */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { UnderWay } from './under-way.ts';

/** Whoever has sent half of a request when nothing else is left has so long for the other half. */
const HALF_SENT_MS = 750;
/** Of the event loop, in each of which it reads all that has arrived; the first may be one that has read already. */
const TURNS = 4;

/**
 * Closes the application. The listener goes as soon as what has arrived is read, idle connections with it.
 *
 * @param input.withinMs how long answers under way may take
 * @returns how many of them were cut
 */
export async function drain(input: {
  app: FastifyInstance;
  underWay: UnderWay;
  withinMs: number;
}): Promise<{ cut: number }> {
  const { app, underWay, withinMs } = input;
  const over = new AbortController();
  const { signal } = over;
  const resting = async () => {
    do {
      await underWay.empty();
      await pause(HALF_SENT_MS, undefined, { signal });
    } while (underWay.size > 0);
  };
  underWay.leave();
  // A connection whose next request is there and not read yet passes for idle, and on a busy node that is most of them.
  for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
  const closed = app.close().finally(() => over.abort());
  const late = pause(withinMs, true, { signal }).catch(() => false);
  const isLate = await Promise.race([closed.then(() => false), late, resting().then(no, no)]);
  const cut = isLate ? underWay.cut() : 0;
  app.server.closeAllConnections();
  await closed;
  return { cut };
}

const no = () => false;
