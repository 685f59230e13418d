/** Webhooks whose rules take too long or fail: they rest, and the evaluations that were ended are not repeated. */

import type { Place } from './decide.ts';

const FIRST_REST_MS = 1_000;
const MAX_REST_MS = 60_000;
/** Maximum number of webhooks that are remembered. */
const MAX_WEBHOOKS = 1_000;

/** An evaluation that was ended: of a decision, after some of its differences. */
export type SlowPlace = Place & { examined: number };

interface Resting {
  teamId: string;
  slow: SlowPlace[];
  until: number;
  restMs: number;
}

export class RuleRests {
  readonly #webhooks = new Map<string, Resting>();

  /**
   * Lets a webhook rest, twice as long as the last time. `now` is in epoch milliseconds; `place` is the evaluation that
   * was ended, if that is why.
   */
  rest(teamId: string, webhookId: string, now: number, place?: SlowPlace): void {
    const before = this.#webhooks.get(webhookId);
    const restMs = Math.min(MAX_REST_MS, before === undefined ? FIRST_REST_MS : before.restMs * 2);
    const known = before?.slow ?? [];
    const slow = place === undefined ? known : [...known.filter((one) => isSame(one, place)), place];
    this.#webhooks.delete(webhookId);
    this.#webhooks.set(webhookId, { teamId, slow, until: now + restMs, restMs });
    const [oldest] = this.#webhooks.keys();
    if (this.#webhooks.size > MAX_WEBHOOKS && oldest !== undefined) this.#webhooks.delete(oldest);
  }

  /** The webhooks of a team that rest, and the evaluations that were ended. */
  of(teamId: string, now: number): { except: string[]; slow: SlowPlace[] } {
    const ofTeam = [...this.#webhooks].filter(([, one]) => one.teamId === teamId);
    const resting = ofTeam.filter(([, { until, restMs }]) => until > now && until <= now + restMs);
    return { except: resting.map(([id]) => id), slow: ofTeam.flatMap(([, { slow }]) => slow) };
  }

  /** A decision of the webhook was made. */
  end(webhookId: string): void {
    this.#webhooks.delete(webhookId);
  }
}

export function isSame(one: Place, other: Place): boolean {
  return (
    one.webhookId === other.webhookId && one.sequence === other.sequence && one.rewrites === other.rewrites
  );
}
