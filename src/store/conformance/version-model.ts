/** A model of a workflow's versions: what any store must return about them, computed in the simplest way. */
import type { RecordCounts } from '../../model/job.ts';
import type { Mode } from '../../model/workflow.ts';
import type { ChangedRow } from '../operations/history/changes.ts';
import type { RecordChange } from '../operations/history/record-history.ts';
import type { Retention } from '../operations/versions.ts';

/** The records of a version: JSON text by id, in the order of first appearance. */
export type State = ReadonlyMap<string, string>;

export interface Model {
  /** Version 0 is empty. */
  versions: Map<string, string>[];
  publishedAt: number[];
  oldest: number;
}

export function newModel(): Model {
  return { versions: [new Map()], publishedAt: [0], oldest: 0 };
}

/** The version that results from a run with these records. */
export function afterRun(before: State, mode: Mode, records: readonly { id: string }[]): Map<string, string> {
  const after = new Map(before);
  for (const record of records) {
    if (mode === 'append' && after.has(record.id)) continue;
    after.set(record.id, JSON.stringify(record));
  }
  const seen = new Set(records.map(({ id }) => id));
  if (mode === 'replace') for (const id of before.keys()) if (!seen.has(id)) after.delete(id);
  return after;
}

export function countChanges(before: State, after: State): RecordCounts {
  const added = [...after.keys()].filter((id) => !before.has(id)).length;
  const changed = [...after].filter(([id, body]) => before.has(id) && before.get(id) !== body).length;
  const removed = [...before.keys()].filter((id) => !after.has(id)).length;
  return { total: after.size, added, changed, removed };
}

/** The oldest version that is left when everything prunable is pruned. */
export function oldestKept({ versions, publishedAt, oldest }: Model, now: number, keep: Retention): number {
  const current = versions.length - 1;
  for (let version = oldest; version < current; version++) {
    const goneMs = now - (publishedAt[version + 1] ?? 0);
    const kept = version > current - keep.keepVersions && goneMs < keep.keepMs;
    if (kept || goneMs < keep.graceMs) return version;
  }
  return current;
}

/** The number of rows that the readable versions need: one for each state that a record had for a while. */
export function neededRows({ versions, oldest }: Model): number {
  let rows = versions[oldest]?.size ?? 0;
  for (let version = oldest + 1; version < versions.length; version++) {
    const { added, changed } = countChanges(stateAt(versions, version - 1), stateAt(versions, version));
    rows += added + changed;
  }
  return rows;
}

/** The bytes of the records of the newest version, in UTF-8. */
export function bytesOf({ versions }: Model): number {
  return [...(versions.at(-1)?.values() ?? [])].reduce((bytes, body) => bytes + Buffer.byteLength(body), 0);
}

/** The bytes of the states that readable versions contain, but the newest does not. */
export function olderBytes({ versions, oldest }: Model): number {
  let bytes = 0;
  for (let version = Math.max(1, oldest) + 1; version < versions.length; version++) {
    for (const [id, body] of stateAt(versions, version - 1)) {
      if (stateAt(versions, version).get(id) !== body) bytes += Buffer.byteLength(body);
    }
  }
  return bytes;
}

/** The newest readable version that was published by then. */
export function versionAt({ versions, publishedAt, oldest }: Model, at: number): number | null {
  for (let version = versions.length - 1; version >= Math.max(1, oldest); version--) {
    if ((publishedAt[version] as number) <= at) return version;
  }
  return null;
}

/** The changes of a record, newest first. */
export function changesOf(
  { versions, publishedAt, oldest }: Model,
  id: string,
): Omit<RecordChange, 'jobId'>[] {
  const found: Omit<RecordChange, 'jobId'>[] = [];
  for (let version = versions.length - 1; version >= Math.max(1, oldest); version--) {
    const isFirst = version === oldest && oldest > 1;
    const before = isFirst ? null : (stateAt(versions, version - 1).get(id) ?? null);
    const after = stateAt(versions, version).get(id) ?? null;
    if (before === after) continue;
    const type = isFirst ? 'existing' : before === null ? 'added' : after === null ? 'removed' : 'changed';
    found.push({ type, version, publishedAt: publishedAt[version] as number, before, after });
  }
  return found;
}

/** The rows that `changes` must return, in order. */
export function changesBetween(versions: readonly State[], since: number, until: number): ChangedRow[] {
  const before = stateAt(versions, since);
  const after = stateAt(versions, until);
  const row = (id: string) => ({
    id,
    version: turns(versions, id, since, until).at(-1) ?? 0,
    before: before.get(id) ?? null,
    after: after.get(id) ?? null,
  });
  const written = [...after.keys()].map(row).filter((one) => one.before !== one.after);
  const removed = [...before.keys()].filter((id) => !after.has(id));
  const leftIn = (id: string) => turns(versions, id, since, until)[0] ?? 0;
  return [
    ...written.toSorted((a, b) => a.version - b.version),
    ...removed.toSorted((a, b) => leftIn(a) - leftIn(b)).map(row),
  ];
}

/** The versions that added, changed or removed a record. */
function turns(versions: readonly State[], id: string, since: number, until: number): number[] {
  const found: number[] = [];
  for (let version = since + 1; version <= until; version++) {
    if (stateAt(versions, version - 1).get(id) !== stateAt(versions, version).get(id)) found.push(version);
  }
  return found;
}

function stateAt(versions: readonly State[], version: number): State {
  return versions[version] ?? new Map();
}
