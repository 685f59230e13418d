/** One attempt to send a delivery: opens the webhook's secrets, sends the request, and decides what follows. */
import { afterAttempt, type DueDelivery, type NextStep } from '../model/delivery.ts';
import { pauseReason, restAfter, verdictOf } from '../model/lane.ts';
import { isMailUrl } from '../model/messages/mail-address.ts';
import type { TeamDispatchers } from '../net/dispatcher.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import { hopsOf, type Traced, toTraceparent, tracedByOthers } from '../observe/trace-context.ts';
import type { Tracing } from '../observe/tracing.ts';
import type { Clock } from '../std/clock.ts';
import type { Sealer } from '../std/seal.ts';
import type { DueLane } from '../store/operations/lanes.ts';
import type { Settlement } from '../store/operations/settle.ts';
import type { Store } from '../store/store.ts';
import { type Destination, destinationOf } from './destination.ts';
import type { Lane } from './lane.ts';
import type { Mailing } from './mail/mailing.ts';
import { openHeaders, openSecretKey } from './sealed.ts';
import { type Sent, sendAttempt } from './send.ts';
import type { SigningKeys } from './sign.ts';
import { openSigningKey } from './signing-keys.ts';

/** How long a lane rests if its secrets cannot be decrypted. */
const UNOPENED_REST_MS = 60_000;

/**
 * `unsigned` means that nothing was sent, and that the caller drops the queue of the lane. `cut` means that the signal
 * aborted the attempt, which proves nothing about the endpoint. In both cases, the delivery was released and stays due,
 * and no attempt is counted.
 */
type AttemptEnd = Conclusion | 'unsigned' | 'cut';

/** Never rejects. */
export type AttemptDelivery = (lane: Lane, delivery: DueDelivery, signal: AbortSignal) => Promise<AttemptEnd>;

export function createAttemptDelivery(input: {
  store: Store;
  sealer: Sealer;
  now: Clock;
  dispatchers: TeamDispatchers;
  mailing: Mailing;
  userAgent: string;
  observer: Observer;
  tracing: Tracing | undefined;
  random: () => number;
  log: Logger;
}): AttemptDelivery {
  const { store, now, dispatchers, mailing, observer, tracing, random, log } = input;
  const open = createOpener(input);
  /** Lanes for which a failure to sign was already logged. */
  const unsigned = new WeakSet<Lane>();
  return async (lane, delivery, signal) => {
    // A request that is sent while the circuit breaker is open is the probe of the breaker.
    const probe = lane.health.state === 'open';
    const { url } = lane.due;
    const own = tracing?.under(delivery.trace);
    const traced = own ?? tracedByOthers(delivery.trace);
    let sent: Sent;
    const outgoing = {
      timeoutMs: lane.due.settings.timeoutMs,
      queuedMs: Math.max(0, store.now() - delivery.dueAt),
      messageId: delivery.messageId,
      body: delivery.body,
      signal,
    };
    try {
      if (isMailUrl(lane.due.url)) sent = await mailing.send(lane.due, outgoing);
      else {
        sent = await sendAttempt(
          { now, dispatcher: dispatchers.of(lane.due.teamId) },
          {
            ...outgoing,
            ...open(lane),
            eventType: delivery.eventType,
            attempt: delivery.attempt + 1,
            hops: hopsOf(delivery.trace),
            ...(own?.trace ? { traceparent: toTraceparent(own.trace) } : {}),
          },
        );
      }
      unsigned.delete(lane);
    } catch (error) {
      postponeUnsigned(lane, delivery, error);
      return 'unsigned';
    }
    if (signal.aborted && sent.attempt.outcome !== 'ok') {
      lane.release(delivery.id);
      return 'cut';
    }
    const hasMoved = lane.due.url !== url;
    const nowMs = store.now();
    return conclude({ lane, delivery, sent, traced, probe, hasMoved, nowMs, random: random(), observer });
  };

  /**
   * Postpones a delivery that could not be signed. Neither the endpoint nor the delivery is the cause, so the delivery
   * stays due and no attempt is counted.
   */
  function postponeUnsigned(
    lane: Lane,
    { id: deliveryId, teamId, webhookId }: DueDelivery,
    error: unknown,
  ): void {
    lane.postpone(deliveryId, store.now() + UNOPENED_REST_MS);
    if (unsigned.has(lane)) return;
    unsigned.add(lane);
    log.error({ err: error, teamId, webhookId, deliveryId }, 'delivery.not_signed');
  }
}

interface Opened {
  to: Destination;
  keys: SigningKeys;
}

/** Returns a function that decrypts the secrets of a lane, and keeps them until the webhook or the team's key changes. */
function createOpener({ sealer, userAgent }: { sealer: Sealer; userAgent: string }): (lane: Lane) => Opened {
  const opened = new WeakMap<Lane, Opened & { due: DueLane }>();
  return (lane) => {
    const { due } = lane;
    const known = opened.get(lane);
    if (known !== undefined && hasSameSecrets(known.due, due)) {
      // The store returns a new object whenever it is asked for the lane.
      known.due = due;
      return known;
    }
    const { teamId, url, signingKey } = due;
    const secrets = due.secrets.map((sealed) => openSecretKey(sealer, { teamId, sealed }));
    const headers = openHeaders(sealer, { teamId, sealed: due.headers });
    const privateKey = signingKey === null ? null : openSigningKey(sealer, { teamId, sealed: signingKey });
    const fresh = { due, to: destinationOf({ url, headers, userAgent }), keys: { secrets, privateKey } };
    opened.set(lane, fresh);
    return fresh;
  };
}

function hasSameSecrets(one: DueLane, other: DueLane): boolean {
  if (one === other) return true;
  return (
    one.url === other.url &&
    one.headers === other.headers &&
    one.signingKey === other.signingKey &&
    one.secrets.length === other.secrets.length &&
    one.secrets.every((secret, place) => secret === other.secrets[place])
  );
}

/** A lane that rests longer than this releases the deliveries in its queue. */
const LONG_REST_MS = 1_000;

interface Conclusion {
  /** Written by the settler. */
  settlement: Settlement;
  /** Whether the lane must release its queue. */
  drops: boolean;
  /** Why the webhook must be paused; null if it must not be paused. */
  pauses: string | null;
}

/** Decides what follows an attempt, updates the health of the lane, and reports the attempt to the observer. */
function conclude(input: {
  lane: Lane;
  delivery: DueDelivery;
  sent: Sent;
  traced: Traced;
  /** Whether the attempt was the probe of an open circuit breaker. */
  probe: boolean;
  /** Whether the webhook got another URL during the attempt. */
  hasMoved: boolean;
  nowMs: number;
  random: number;
  observer: Observer;
}): Conclusion {
  const { lane, delivery, sent, probe, hasMoved, nowMs, random } = input;
  const { attempt, retryAfterMs } = sent;
  const { outcome, status, durationMs: tookMs, error } = attempt;
  const number = delivery.attempt + 1;
  // A failure of the old endpoint says nothing about the new one, which gets the delivery immediately.
  const next: NextStep =
    hasMoved && outcome !== 'ok'
      ? { state: 'waiting', nextAt: nowMs }
      : afterAttempt({ outcome, status, attempt: number, nowMs, random, retryAfterMs });

  const verdict = verdictOf(attempt);
  const restMs = restAfter(retryAfterMs, next.state === 'waiting' ? next.nextAt - nowMs : 0);
  const { before, health, breaker } = hasMoved
    ? { before: lane.health, health: null, breaker: undefined }
    : lane.concluded({ verdict, tookMs, probe, restMs, nowMs, random });

  const { teamId, id: deliveryId, webhookId, eventId, eventType } = delivery;
  input.observer.deliveryAttemptDone?.({
    teamId,
    webhookId,
    eventId,
    eventType,
    deliveryId,
    attempt: number,
    server: sent.server,
    outcome,
    status,
    error,
    next: next.state,
    nextAt: next.state === 'waiting' ? next.nextAt : null,
    circuit: before.state === lane.health.state ? null : lane.health.state,
    restsUntil: lane.health.restsUntil > nowMs ? lane.health.restsUntil : null,
    startedAt: attempt.startedAt,
    durationMs: tookMs,
    waitedMs: attempt.details?.timing.queuedMs ?? 0,
    ...input.traced,
  });
  const isLongRest = lane.health.restsUntil - nowMs > LONG_REST_MS;
  return {
    settlement: {
      teamId,
      deliveryId,
      webhookId,
      epoch: lane.due.epoch,
      attempt: number,
      rewrites: delivery.rewrites,
      log: attempt,
      next,
      health,
      breaker,
    },
    drops: next.state === 'canceled' || isLongRest || (lane.ordered && next.state === 'waiting'),
    pauses: next.state === 'canceled' ? null : pauseReason(lane.health, nowMs, error),
  };
}
