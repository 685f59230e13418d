/** One delivery of a lane on its way: where it stands in a trace, how it is sent, and what is made of how that ends. */
import type { DueDelivery } from '../model/delivery.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import { tracedByOthers } from '../observe/trace-context.ts';
import type { Tracing } from '../observe/tracing.ts';
import type { Clock } from '../std/clock.ts';
import type { Lane } from './lane.ts';
import type { Attempting } from './lane-attempt.ts';
import { type Concluded, conclude } from './lane-conclude.ts';
import { noteUnsigned } from './lane-trouble.ts';
import type { Sent } from './send.ts';

/**
 * `unsigned`: nothing was sent, and the caller drops what the lane has queued. `cut`: the attempt was broken off by the
 * signal, which says nothing of the endpoint. In both cases it is given back and stays due.
 */
export type Flown = Concluded | 'unsigned' | 'cut';

export type Flying = (lane: Lane, delivery: DueDelivery, signal: AbortSignal) => Promise<Flown>;

export function createFlying(input: {
  attempt: Attempting;
  observer: Observer;
  tracing: Tracing | undefined;
  now: Clock;
  random: () => number;
  log: Logger;
}): Flying {
  const { attempt, observer, tracing, now, random, log } = input;
  return async (lane, delivery, signal) => {
    // What is sent while the breaker is open is its probe.
    const probe = lane.health.state === 'open';
    const own = tracing?.under(delivery.trace);
    const traced = own ?? tracedByOthers(delivery.trace);
    let sent: Sent;
    try {
      sent = await attempt(lane.due, delivery, { signal, trace: own?.trace ?? null });
      lane.unsignedSaid = false;
    } catch (error) {
      noteUnsigned(lane, delivery, { error: error as Error, nowMs: now(), log });
      return 'unsigned';
    }
    if (signal.aborted && sent.attempt.outcome !== 'ok') {
      lane.release(delivery.id);
      return 'cut';
    }
    return conclude({ lane, delivery, sent, traced, probe, nowMs: now(), random: random(), observer });
  };
}
