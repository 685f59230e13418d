/** The rows of versions, their mapping to the model, and which versions may be pruned; the same for both drivers. */
import type { DataVersion, Retention, VersionSummary } from './record-operations.ts';

export interface DataVersionRow extends Omit<DataVersion, 'fields'> {
  fields: string;
}

export function toDataVersion(row: DataVersionRow): DataVersion {
  return { ...row, fields: JSON.parse(row.fields) };
}

export interface VersionSummaryRow {
  number: number;
  job_id: string;
  total: number;
  added: number;
  changed: number;
  removed: number;
  published_at: number;
}

export function toVersionSummary(row: VersionSummaryRow): VersionSummary {
  const { number, job_id, published_at, total, added, changed, removed } = row;
  return { number, jobId: job_id, publishedAt: published_at, records: { total, added, changed, removed } };
}

/**
 * How many of the oldest versions may be pruned.
 *
 * @param successors the versions that superseded them, in order: a version's age counts from when it was superseded
 */
export function countPrunable(
  successors: readonly { number: number; published_at: number }[],
  { now, current, retention }: { now: number; current: number; retention: Retention },
): number {
  const { keepVersions, keepMs, graceMs } = retention;
  const kept = successors.findIndex(({ number, published_at }) => {
    const supersededMs = now - published_at;
    return supersededMs < graceMs || (number - 1 > current - keepVersions && supersededMs < keepMs);
  });
  return kept === -1 ? successors.length : kept;
}
