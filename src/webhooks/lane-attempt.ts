/** One attempt of a lane: opens what is sealed, signs, sends. */
import type { DueDelivery } from '../model/delivery.ts';
import { type TraceContext, toTraceparent } from '../observe/trace-context.ts';
import type { Sealer } from '../std/seal.ts';
import type { Store } from '../store/store.ts';
import type { DueLane } from '../store/webhook-operations.ts';
import { type Destination, destinationOf } from './destination.ts';
import { openHeaders } from './own-headers.ts';
import { openSecretKey } from './secret.ts';
import { type Sender, type Sent, sendAttempt } from './send.ts';
import type { SigningKeys } from './sign.ts';
import { createTeamSigner } from './signing-keys.ts';

/** Neither the endpoint nor the delivery is at fault: what is sealed could not be opened. */
export class UnsignedError extends Error {
  override readonly name = 'UnsignedError';
}

/** @param options.trace the attempt's own place in its trace, for the endpoint to go on from */
export type Attempting = (
  due: DueLane,
  delivery: DueDelivery,
  options: { signal: AbortSignal; trace: TraceContext | null },
) => Promise<Sent>;

/** Answers a function that makes one attempt; it throws nothing but UnsignedError. */
export function createAttempting(input: {
  store: Store;
  sealer: Sealer;
  sender: Sender;
  userAgent: string;
}): Attempting {
  const { store, sealer, sender, userAgent } = input;
  const keyOf = createTeamSigner(store, sealer);
  /** What was opened, for as long as the lane stands as the store named it: half a second, or until it changes. */
  const opened = new WeakMap<DueLane, { to: Destination; keys: SigningKeys }>();
  const open = async (due: DueLane) => {
    const { teamId, url } = due;
    const privateKey = await keyOf(teamId);
    const secrets = due.secrets.map((sealed) => openSecretKey(sealer, { teamId, sealed }));
    const headers = openHeaders(sealer, { teamId, sealed: due.headers });
    const fresh = { to: destinationOf({ url, headers, userAgent }), keys: { secrets, privateKey } };
    opened.set(due, fresh);
    return fresh;
  };
  return async (due, delivery, { signal, trace }) => {
    const { eventId, eventType, body } = delivery;
    try {
      const { to, keys } = opened.get(due) ?? (await open(due));
      return await sendAttempt(sender, {
        to,
        keys,
        timeoutMs: due.settings.timeoutMs,
        queuedMs: Math.max(0, store.now() - delivery.dueAt),
        eventId,
        eventType,
        attempt: delivery.attempt + 1,
        body,
        signal,
        ...(trace === null ? {} : { traceparent: toTraceparent(trace) }),
      });
    } catch (cause) {
      throw new UnsignedError('A delivery could not be signed', { cause });
    }
  };
}
