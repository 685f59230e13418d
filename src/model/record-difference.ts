/** How a record differs between two versions, field by field, as events and the API list it. */
import { parseExactly } from './record.ts';
import { sameValue } from './same-json.ts';

/** One record's difference between two versions. */
export interface Difference {
  type: 'added' | 'changed' | 'removed';
  id: string;
  fields: { key: string; value?: unknown; previousValue?: unknown }[];
}

/** Bodies stay under 20 kB (Standard Webhooks 1.0); this is what the differences may take of that. */
export const MAX_DIFFERENCES_BYTES = 16_000;

/** A record that differs: its JSON text before and after, absent where it did not exist. */
export interface ChangedRecord {
  id: string;
  before: string | undefined;
  after: string | undefined;
}

/** Lists what differs, field by field, as far as it fits into a body. */
export function differences(records: Iterable<ChangedRecord>): {
  differences: Difference[];
  truncated: boolean;
} {
  const list: Difference[] = [];
  let bytes = 0;
  for (const record of records) {
    const difference = differenceOf(record);
    bytes += Buffer.byteLength(JSON.stringify(difference)) + 1;
    if (bytes > MAX_DIFFERENCES_BYTES) return { differences: list, truncated: true };
    list.push(difference);
  }
  return { differences: list, truncated: false };
}

/** What differs between two texts of a record, field by field. */
export function differenceOf(record: ChangedRecord): Difference {
  const before = record.before === undefined ? {} : (parseExactly(record.before) as Record<string, unknown>);
  const after = record.after === undefined ? {} : (parseExactly(record.after) as Record<string, unknown>);
  const fields: Difference['fields'] = [];
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const had = Object.hasOwn(before, key);
    const has = Object.hasOwn(after, key);
    if (had && has && sameValue(before[key], after[key])) continue;
    fields.push({
      key,
      ...(has ? { value: after[key] } : {}),
      ...(had ? { previousValue: before[key] } : {}),
    });
  }
  const type = record.before === undefined ? 'added' : record.after === undefined ? 'removed' : 'changed';
  return { type, id: record.id, fields };
}
