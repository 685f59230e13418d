/** One attempt to send a delivery of a lane: opens the webhook's secrets, sends, and concludes what follows. */
import type { DueDelivery } from '../model/delivery.ts';
import { Problem } from '../model/error.ts';
import type { TeamDispatchers } from '../net/dispatcher.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import { hopsOf, toTraceparent, tracedByOthers } from '../observe/trace-context.ts';
import type { Tracing } from '../observe/tracing.ts';
import type { Sealer } from '../std/seal.ts';
import type { DueLane } from '../store/operations/lanes.ts';
import type { Store } from '../store/store.ts';
import { openHeaders } from './custom-headers.ts';
import { type Destination, destinationOf } from './destination.ts';
import type { Lane } from './lane.ts';
import { type Conclusion, conclude } from './lane-conclude.ts';
import { openSecretKey } from './secret.ts';
import { type Sender, type Sent, sendAttempt } from './send.ts';
import type { SigningKeys } from './sign.ts';
import { createTeamSigner } from './signing-keys.ts';

/** How long a lane rests whose secrets cannot be opened, or whose team's key the store could not return just now. */
const UNOPENED_REST_MS = 60_000;
const STORE_AWAY_REST_MS = 1_000;

/**
 * `unsigned`: nothing was sent; the caller drops the lane's queue. `cut`: the signal aborted the attempt, which says
 * nothing about the endpoint. In both cases the delivery was given back and stays due, without an attempt used.
 */
type AttemptEnd = Conclusion | 'unsigned' | 'cut';

/** Never rejects. */
export type AttemptDelivery = (lane: Lane, delivery: DueDelivery, signal: AbortSignal) => Promise<AttemptEnd>;

export function createAttemptDelivery(input: {
  store: Store;
  sealer: Sealer;
  sender: Omit<Sender, 'dispatcher'>;
  dispatchers: TeamDispatchers;
  userAgent: string;
  observer: Observer;
  tracing: Tracing | undefined;
  random: () => number;
  log: Logger;
}): AttemptDelivery {
  const { store, sealer, sender, dispatchers, observer, tracing, random, log } = input;
  const open = createOpener(input);
  return async (lane, delivery, signal) => {
    // What is sent while the circuit breaker is open is its probe.
    const probe = lane.health.state === 'open';
    const own = tracing?.under(delivery.trace);
    const traced = own ?? tracedByOthers(delivery.trace);
    let sent: Sent;
    try {
      const dispatcher = dispatchers.of(lane.due.teamId);
      sent = await sendAttempt(
        { ...sender, dispatcher },
        {
          ...(await open(lane.due)),
          timeoutMs: lane.due.settings.timeoutMs,
          queuedMs: Math.max(0, store.now() - delivery.dueAt),
          eventId: delivery.eventId,
          eventType: delivery.eventType,
          attempt: delivery.attempt + 1,
          hops: hopsOf(delivery.trace),
          body: delivery.body,
          signal,
          ...(own?.trace ? { traceparent: toTraceparent(own.trace) } : {}),
        },
      );
      lane.isUnsignedLogged = false;
    } catch (error) {
      giveBackUnsigned(lane, delivery, { error, nowMs: store.now(), log });
      return 'unsigned';
    }
    if (signal.aborted && sent.attempt.outcome !== 'ok') {
      lane.release(delivery.id);
      return 'cut';
    }
    return conclude({ lane, delivery, sent, traced, probe, nowMs: store.now(), random: random(), observer });
  };

  function createOpener({ userAgent }: { userAgent: string }) {
    const keyOf = createTeamSigner(store, sealer);
    /** Cached by the object that the store returned for the lane, which lives half a second, or until it changes. */
    const opened = new WeakMap<DueLane, { to: Destination; keys: SigningKeys }>();
    return async (due: DueLane): Promise<{ to: Destination; keys: SigningKeys }> => {
      const known = opened.get(due);
      if (known !== undefined) return known;
      const { teamId, url } = due;
      const privateKey = await keyOf(teamId);
      const secrets = due.secrets.map((sealed) => openSecretKey(sealer, { teamId, sealed }));
      const headers = openHeaders(sealer, { teamId, sealed: due.headers });
      const fresh = { to: destinationOf({ url, headers, userAgent }), keys: { secrets, privateKey } };
      opened.set(due, fresh);
      return fresh;
    };
  }
}

/** Neither the endpoint nor the delivery is at fault, so the delivery stays due without an attempt used. */
function giveBackUnsigned(
  lane: Lane,
  { id: deliveryId, teamId, webhookId }: DueDelivery,
  { error, nowMs, log }: { error: unknown; nowMs: number; log: Logger },
): void {
  const isStoreAway = error instanceof Problem;
  lane.giveBack(deliveryId, nowMs + (isStoreAway ? STORE_AWAY_REST_MS : UNOPENED_REST_MS));
  if (lane.isUnsignedLogged) return;
  lane.isUnsignedLogged = !isStoreAway;
  log.error({ err: error, teamId, webhookId, deliveryId }, 'delivery.not_signed');
}
