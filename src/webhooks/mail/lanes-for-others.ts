/**
 * Which lanes a node without an SMTP server leaves to nodes that have one. Nobody knows the settings of other nodes, so it
 * takes a lane of mails only after the lane was due and free for a minute: then no other node wants it, and its attempts
 * fail with a sentence that names the setting.
 */
import { isMailUrl } from '../../model/messages/mail-address.ts';
import type { Clock } from '../../std/clock.ts';

/** How long a lane of mails must be free. A node with an SMTP server takes one within a second. */
const FREE_MS = 60_000;
/** A lane that this node has not found for this long was held by another node meanwhile. */
const UNSEEN_MS = 10_000;
const MAX_LANES = 10_000;

export class LanesForOthers {
  readonly #elapsed: Clock;
  /** When lanes were found free, by webhook. */
  readonly #found = new Map<string, { first: number; last: number }>();

  /** @param elapsed a monotonic clock, in milliseconds */
  constructor(elapsed: Clock) {
    this.#elapsed = elapsed;
  }

  mayTake({ webhookId, url }: { webhookId: string; url: string }): boolean {
    if (!isMailUrl(url)) return true;
    const now = this.#elapsed();
    const known = this.#found.get(webhookId);
    const first = known === undefined || now - known.last > UNSEEN_MS ? now : known.first;
    if (this.#found.size >= MAX_LANES) this.#found.clear();
    this.#found.set(webhookId, { first, last: now });
    return now - first >= FREE_MS;
  }
}
