/** One attempt of a lane: opens what is sealed, signs, sends. */
import type { DueDelivery } from '../model/delivery.ts';
import type { Sealer } from '../std/seal.ts';
import type { Store } from '../store/store.ts';
import type { DueLane } from '../store/webhook-operations.ts';
import { openHeaders } from './own-headers.ts';
import { openSecretKey } from './secret.ts';
import { type Sender, type Sent, sendAttempt } from './send.ts';
import { createTeamSigner } from './signing-keys.ts';

/** Neither the endpoint nor the delivery is at fault: what is sealed could not be opened. */
export class UnsignedError extends Error {
  override readonly name = 'UnsignedError';
}

export type Attempting = (due: DueLane, delivery: DueDelivery, signal: AbortSignal) => Promise<Sent>;

/** Answers a function that makes one attempt; it throws nothing but UnsignedError. */
export function createAttempting(input: { store: Store; sealer: Sealer; sender: Sender }): Attempting {
  const { store, sealer, sender } = input;
  const signer = createTeamSigner(store, sealer);
  /** What was opened, for as long as the lane stands as the store named it: half a second, or until it changes. */
  const opened = new WeakMap<DueLane, { secrets: Buffer[]; headers: Record<string, string> }>();
  const open = (due: DueLane) => {
    const { teamId } = due;
    const known = opened.get(due);
    if (known !== undefined) return known;
    const secrets = due.secrets.map((sealed) => openSecretKey(sealer, { teamId, sealed }));
    const fresh = { secrets, headers: openHeaders(sealer, { teamId, sealed: due.headers }) };
    opened.set(due, fresh);
    return fresh;
  };
  return async (due, delivery, signal) => {
    const { teamId, url, settings } = due;
    const { eventId, eventType, body } = delivery;
    try {
      const privateKey = await signer(teamId);
      const { secrets, headers } = open(due);
      const queuedMs = Math.max(0, store.now() - delivery.dueAt);
      return await sendAttempt(sender, {
        url,
        secrets,
        privateKey,
        headers,
        timeoutMs: settings.timeoutMs,
        queuedMs,
        eventId,
        eventType,
        attempt: delivery.attempt + 1,
        body,
        signal,
      });
    } catch (cause) {
      throw new UnsignedError('A delivery could not be signed', { cause });
    }
  };
}
