/** The state of a record that follows from its history. */
import type { DataRecord, RecordChange } from '../../../../client/src/flowhook-client.ts';

/**
 * The newest state of a record.
 *
 * @param history all its changes, newest first
 * @returns undefined if it was removed, or if the history does not start with a whole record
 */
export function stateOf(history: readonly RecordChange[]): DataRecord | undefined {
  const from = history.findIndex(({ record }) => record !== undefined);
  const start = history[from]?.record;
  if (start === undefined) return undefined;
  const state = new Map(Object.entries(start));
  for (const { type, fields = [] } of history.slice(0, from).reverse()) {
    if (type === 'removed') return undefined;
    for (const { key, value } of fields) {
      if (value === undefined) state.delete(key);
      else state.set(key, value);
    }
  }
  return Object.fromEntries(state) as DataRecord;
}
