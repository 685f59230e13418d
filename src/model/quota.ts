/** Quotas of teams, and the sentences of the errors that occur when a team reaches a quota. */
import { bytesWords } from '../std/amounts.ts';
import { Problem } from './error.ts';

export const QUOTAS = ['workflows', 'webhooks', 'keys', 'records', 'storedBytes', 'runningJobs'] as const;
export type Quota = (typeof QUOTAS)[number];

/**
 * Limits of a team; null: unlimited. `keys` limits the number of usable keys, `records` the number of records in
 * current versions, and `storedBytes` the size of these records as JSON in UTF-8 (older versions, logs and events do
 * not count). Jobs beyond `runningJobs` wait.
 */
export type Quotas = Readonly<Record<Quota, number | null>>;

/** The quotas set for one team. A quota that is missing here defaults to the quota of the instance. */
export type OwnQuotas = Partial<Quotas>;

/** Current use by a team. */
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

/** The sizes of a workflow's records before and after a run publishes. Null: unknown. */
export type PublishedSizes = Readonly<
  Record<PublishedQuota, { before: number | null; after: number | null }>
>;

/** Parses a quota: a whole number, `off` for unlimited (null), `default` for the quota of the instance (undefined). */
export function parseQuota(text: string): number | null | undefined | 'mistake' {
  if (text === 'off') return null;
  if (text === 'default') return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : 'mistake';
}

const ASK = 'or ask the operator for a higher quota (`flowhook teams set-quota`)';

/** Quotas that are checked when something is created. */
export type MadeQuota = 'workflows' | 'webhooks' | 'keys';

const WAYS: Readonly<Record<MadeQuota, string>> = {
  workflows: 'Archive one first',
  webhooks: 'Unsubscribe one first',
  keys: 'Revoke one first',
};

/** Allows one key more than the quota during a rotation, so that a team that has reached its quota can rotate keys. */
export const OVERLAPPING = {
  beyond: 1,
  way: 'Rotate without an overlap, wait until other overlaps have ended',
};

/**
 * The error for exceeding a quota.
 *
 * @param way what the caller can do about it
 */
export function quotaReached(quota: MadeQuota, most: number, way: string = WAYS[quota]): Problem {
  return new Problem('quota_reached', {
    sentence: `The team has reached its quota of ${most} ${quota}. ${way}, ${ASK}`,
  });
}

/**
 * Why a quota prevents a run from publishing; undefined if no quota does. A team that exceeds a quota may still publish
 * fewer records than before.
 */
export function publishMistake(input: {
  quota: PublishedQuota;
  most: number | null;
  /** Total of the team's other workflows. */
  others: number;
  before: number;
  after: number;
}): string | undefined {
  const { quota, most, others, before, after } = input;
  if (most === null || after <= before || others + after <= most) return undefined;
  return (
    `Nothing was published: the team would have ${others + after}, which exceeds its quota \`${quota}\` of ` +
    `${amount(quota, most)}. Publish ${quota === 'records' ? 'fewer' : 'fewer or shorter'} records, remove records ` +
    `of other workflows, ${ASK}`
  );
}

function amount(quota: PublishedQuota, most: number): string {
  return quota === 'records' ? `${most} records` : `${most} bytes of records (${bytesWords(most)})`;
}
