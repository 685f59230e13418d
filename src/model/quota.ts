/** Quotas: how much a team may have, and the sentences for when it has that much. */
import { bytesWords } from '../std/amounts.ts';
import { Problem } from './error.ts';

export const QUOTAS = ['workflows', 'webhooks', 'keys', 'records', 'storedBytes', 'runningJobs'] as const;
export type Quota = (typeof QUOTAS)[number];

/**
 * How much of each a team may have; null: any number. `keys` counts those that may be used, `records` those of the
 * current versions, `storedBytes` the bytes of their JSON text in UTF-8; older versions, logs and events do not count.
 * Jobs beyond `runningJobs` wait.
 */
export type Quotas = Readonly<Record<Quota, number | null>>;

/** What was set for one team; what is missing follows the instance. */
export type OwnQuotas = Partial<Quotas>;

/** How much of each a team has. */
export type Holdings = Readonly<Record<Quota, number>>;

export const NO_QUOTAS: Quotas = {
  workflows: null,
  webhooks: null,
  keys: null,
  records: null,
  storedBytes: null,
  runningJobs: null,
};

/** The quotas that are checked when a run publishes. */
export const PUBLISHED = ['records', 'storedBytes'] as const satisfies readonly Quota[];
export type PublishedQuota = (typeof PUBLISHED)[number];

/** What a workflow has before a run publishes and would have after; null: unknown. */
export type PublishedSizes = Readonly<
  Record<PublishedQuota, { before: number | null; after: number | null }>
>;

/** As people write it: a whole number, `off` for any number, `default` for what the instance has (null, undefined). */
export function parseQuota(text: string): number | null | undefined | 'mistake' {
  if (text === 'off') return null;
  if (text === 'default') return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : 'mistake';
}

const ASK = 'or ask the operator for more (`flowhook teams set-quota`)';

/** Quotas that are checked when something is made. */
export type MadeQuota = 'workflows' | 'webhooks' | 'keys';

const WAYS: Readonly<Record<MadeQuota, string>> = {
  workflows: 'Archive one first',
  webhooks: 'Unsubscribe one first',
  keys: 'Revoke one first',
};

/** An old key that goes on working may go one beyond the quota, so that a team with all its keys can rotate them. */
export const OVERLAPPING = { beyond: 1, way: 'Rotate without an overlap, wait until others have ended' };

/** The refusal to make one more than the team may have. @param way what to do instead */
export function quotaReached(quota: MadeQuota, most: number, way: string = WAYS[quota]): Problem {
  return new Problem('quota_reached', {
    sentence: `The team has as many ${quota} as it may have (${most}). ${way}, ${ASK}`,
  });
}

/** Why a run may not publish, as a sentence; undefined when it may. A team over its quota may still publish fewer. */
export function publishMistake(input: {
  quota: PublishedQuota;
  most: number | null;
  /** Of all the team's other workflows. */
  others: number;
  before: number;
  after: number;
}): string | undefined {
  const { quota, most, others, before, after } = input;
  if (most === null || after <= before || others + after <= most) return undefined;
  return (
    `The quota ${quota} of the team refused to publish: it may have ${amount(quota, most)}, and with these it would ` +
    `have ${others + after}. The published records stay as they are. Publish ` +
    `${quota === 'records' ? 'fewer' : 'fewer or shorter ones'}, remove those of other workflows, ${ASK}`
  );
}

function amount(quota: PublishedQuota, most: number): string {
  return quota === 'records' ? `${most} records` : `${most} bytes of records (${bytesWords(most)})`;
}
