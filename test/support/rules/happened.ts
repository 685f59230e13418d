/** What the model needs to know of events and of versions. */
import type { StoredEvent } from '../../../src/store/operations/events.ts';
import type { Item } from './filters.ts';
import type { Difference, Happened } from './model.ts';

/** @param differences those of the version, if the event is about one */
export function happened(event: StoredEvent, differences: Difference[]): Happened {
  const { id, type, workflowId, createdAt, body } = event;
  const { data } = JSON.parse(body) as { data: { version?: number; records?: { added: number } } };
  return {
    id,
    at: createdAt,
    body,
    type,
    workflowId,
    version: data.version ?? null,
    added: data.records?.added ?? null,
    differences: type === 'workflow_data_change' ? differences : null,
  };
}

/** The differences between two versions. */
export function differencesOf(
  before: ReadonlyMap<string, Item>,
  after: ReadonlyMap<string, Item>,
): Difference[] {
  const all = [...new Set([...after.keys(), ...before.keys()])].map((id) => ({
    id,
    previous: before.get(id) ?? null,
    record: after.get(id) ?? null,
  }));
  return all.filter(({ previous, record }) => JSON.stringify(previous) !== JSON.stringify(record));
}
