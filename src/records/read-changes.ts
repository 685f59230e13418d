/** The changes of a workflow's records between two versions, one JSON object for each changed record. */

import { Problem } from '../model/error.ts';
import { differenceOf } from '../model/same-json.ts';
import type { WorkflowRef } from '../model/workflow.ts';
import { ownTurn } from '../std/fair-share.ts';
import type { ChangedRow, ChangesCursor } from '../store/operations/records.ts';
import type { DataVersion } from '../store/operations/versions.ts';
import type { Store } from '../store/store.ts';
import { checkStillThere, openVersion, PARSED_ROWS, pageRows } from './read.ts';

/** Maximum number of characters that are compared in one turn of the event loop, which takes a few milliseconds. */
const COMPARED_CHARACTERS = 65_536;

/** A range of versions. `since` 0 means that the range starts before the first version. */
export interface Span {
  since: number;
  until: DataVersion;
}

/**
 * Resolves the requested range of versions.
 *
 * @throws Problem `workflow_not_found`; `version_not_found` if a version was never published, or `until` was pruned;
 *   `version_pruned` if `since` was pruned; `field_invalid` if `until` precedes `since`
 */
export async function openSpan(
  store: Store,
  place: WorkflowRef,
  asked: { since: number; until: number | undefined },
): Promise<Span> {
  const newest = await openVersion(store, place);
  const { since } = asked;
  if (since > newest.number) {
    throw new Problem('version_not_found', {
      sentence: `No such version: ${since} was never published, the newest is ${newest.number}. If a backup was restored, read all records again`,
    });
  }
  if (since !== 0 && since < newest.oldest) throw new Problem('version_pruned');
  if (asked.until !== undefined && asked.until < since) {
    throw new Problem('field_invalid', {
      sentence: 'The query parameter `until` must not be lower than `since`',
    });
  }
  const until =
    asked.until === 0
      ? { ...newest, number: 0, total: 0 }
      : await openVersion(store, place, asked.until, 'Omit `until` to read up to the newest version');
  return { since, until };
}

/**
 * Yields the bytes of a body with all changes, as a JSON array or as NDJSON: `{ type, id, version, record }` (added)
 * or `{ type, id, version, fields }` (changed, removed), where `fields` is `[{ key, value, previousValue }]`.
 *
 * @param matching selects the rows that are yielded (default: all)
 * @throws VersionGoneError if `since` was pruned or records were erased in the meantime: the connection must then be
 *   aborted
 */
export async function* readChanges(
  store: Store,
  place: WorkflowRef,
  { since, until }: Span,
  format: 'json' | 'ndjson',
  matching: (rows: readonly ChangedRow[]) => Promise<readonly ChangedRow[]> = async (rows) => rows,
): AsyncGenerator<Uint8Array> {
  const [head, between, tail] = format === 'json' ? ['[', ',', ']'] : ['', '\n', ''];
  const oldest = { number: since === 0 ? until.number : since, erasures: until.erasures };
  let before = head;
  let after: ChangesCursor | null = null;
  do {
    if (since === until.number) break;
    const page: Awaited<ReturnType<Store['records']['changes']>> = await store.records.changes({
      ...place,
      since,
      until: until.number,
      after,
      limit: pageRows(until, PARSED_ROWS),
    });
    await checkStillThere(store, place, oldest);
    await ownTurn(place.teamId);
    const lines = await linesOf(place.teamId, await matching(page.rows));
    if (lines.length > 0) {
      yield Buffer.from(before + lines.join(between));
      before = between;
    }
    after = page.next;
  } while (after !== null);
  const end = (before === head ? head : '') + (format === 'ndjson' && before !== head ? '\n' : '') + tail;
  if (end !== '') yield Buffer.from(end);
}

/**
 * Omits records whose value at the end of the range equals their value at its start. Yields regularly, because
 * comparing a whole page may take half a second.
 */
async function linesOf(teamId: string, rows: readonly ChangedRow[]): Promise<string[]> {
  const lines: string[] = [];
  let compared = 0;
  for (const row of rows) {
    if (compared > COMPARED_CHARACTERS) {
      compared = 0;
      await ownTurn(teamId);
    }
    const line = lineOf(row);
    if (line !== undefined) lines.push(line);
    compared += (row.before?.length ?? 0) + (row.after?.length ?? 0);
  }
  return lines;
}

function lineOf({ id, version, before, after }: ChangedRow): string | undefined {
  if (before === null && after !== null) {
    return `{"type":"added","id":${JSON.stringify(id)},"version":${version},"record":${after}}`;
  }
  const difference = differenceOf({ id, before: before ?? undefined, after: after ?? undefined });
  if (difference.fields.length === 0) return undefined;
  return JSON.stringify({ type: difference.type, id, version, fields: difference.fields });
}
