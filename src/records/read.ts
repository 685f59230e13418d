/** Reads whole versions of a workflow's records, page by page from the database, as bodies of responses. */

import { createHash } from 'node:crypto';
import { Problem } from '../model/error.ts';
import type { WorkflowRef } from '../model/workflow.ts';
import { ownTurn } from '../std/fair-share.ts';
import type { RecordPage } from '../store/operations/records.ts';
import type { DataVersion } from '../store/operations/versions.ts';
import type { Store, StoreReader } from '../store/store.ts';
import { type Encoding, encoded, type Format, type Formatter, formatter } from './formats.ts';

/**
 * Maximum size of a page, estimated as rows × largest record. The size is limited because SQLite results near 512 MiB
 * fail silently, a stalled reader holds a page or two in memory, and formatting a page blocks the event loop.
 */
export const PAGE_BYTES = 1_048_576;
export const PAGE_ROWS = 2_000;
/** Maximum number of rows of a page whose records are parsed and serialized again, which takes longer. */
export const PARSED_ROWS = 500;
/** Number of pages between two checks that the version is still complete. Another check follows the last page. */
const CHECK_PAGES = 8;

export function sameWorkflow(one: WorkflowRef, other: WorkflowRef): boolean {
  return one.teamId === other.teamId && one.workflowId === other.workflowId;
}

/** The part of a store that reading a version needs. */
export interface VersionReader {
  readonly records: Pick<StoreReader['records'], 'page' | 'version'>;
}

/** Thrown if rows of a version were pruned or erased while the version was being read. */
export class VersionGoneError extends Error {
  override readonly name = 'VersionGoneError';
}

/**
 * The requested version, or the newest one.
 *
 * @param instead advice for a caller whose version does not exist
 * @throws Problem `workflow_not_found`, `version_not_found` (never published, or pruned)
 */
export async function openVersion(
  store: Store,
  place: WorkflowRef,
  number?: number,
  instead = 'Omit `version` to read the newest',
): Promise<DataVersion> {
  const newest = await store.records.version(place);
  if (newest === undefined) throw new Problem('workflow_not_found');
  if (number === undefined || number === newest.number) return newest;
  const older =
    number < newest.oldest || number > newest.number
      ? undefined
      : await store.records.version({ ...place, number });
  if (older === undefined) {
    const highest = newest.number === 0 ? 'nothing has been published yet' : `the newest is ${newest.number}`;
    const why = number > newest.number ? `was never published, ${highest}` : 'has been pruned';
    throw new Problem('version_not_found', { sentence: `No such version: ${number} ${why}. ${instead}` });
  }
  return older;
}

/**
 * Yields the bytes of a body with every record of a version. Later versions do not affect it.
 *
 * @throws VersionGoneError if the version was pruned, erased from or is incomplete: the connection must then be
 *   aborted, so that a truncated response does not pass for a complete one
 */
export async function* readWhole(
  store: VersionReader,
  place: WorkflowRef,
  version: DataVersion,
  format: Formatter,
): AsyncGenerator<Uint8Array> {
  const { asIs } = format;
  let first = true;
  for await (const page of pages(store, place, version, format)) {
    if (asIs !== undefined) yield page.json;
    else if (first) yield Buffer.concat([Buffer.from(format.head), format.page(page, true)]);
    else yield format.page(page, false);
    first = false;
  }
  const end = first ? format.head + format.tail : (asIs?.end ?? format.tail);
  if (end !== '') yield Buffer.from(end);
}

async function* pages(
  store: VersionReader,
  place: WorkflowRef,
  version: DataVersion,
  { separator, asIs }: Formatter,
): AsyncGenerator<RecordPage> {
  const rows = pageRows(version, asIs === undefined ? PARSED_ROWS : PAGE_ROWS);
  let sent = 0;
  let afterSeq = 0;
  // Reading stops at the last record of the version, because many more rows may follow that belong only to other
  // versions.
  for (let pages = 1, done = false; sent < version.total && !done; pages++) {
    const lead = (sent === 0 ? asIs?.first : asIs?.next) ?? '';
    const { number, versions } = version;
    const from = { ...place, version: number, versions, afterSeq, rows };
    const page = await store.records.page({ ...from, separator, lead });
    if (pages % CHECK_PAGES === 0) await checkStillThere(store, place, version);
    if (page.count > 0) yield page;
    sent += page.count;
    ({ lastSeq: afterSeq, done } = page);
    // Without this yield, a fast reader would block all other work: reading pages and filling the socket's buffer can
    // alternate without returning to the event loop (575 ms for 90 MB).
    await ownTurn(place.teamId);
  }
  await checkStillThere(store, place, version);
  if (sent !== version.total) {
    throw new VersionGoneError(
      `Version ${version.number} has ${version.total} records, but ${sent} were found`,
    );
  }
}

/** Number of rows of a version that certainly fit into a page: at least one, and at most `most`. */
export function pageRows(version: DataVersion, most: number): number {
  return Math.min(most, Math.max(1, Math.floor(PAGE_BYTES / Math.max(1, version.largest))));
}

/** @throws VersionGoneError */
export async function checkStillThere(
  store: VersionReader,
  place: WorkflowRef,
  version: { number: number; erasures: number },
): Promise<void> {
  const now = await store.records.version(place);
  if (now === undefined || now.oldest > version.number) {
    throw new VersionGoneError(`Version ${version.number} was pruned while it was being read`);
  }
  if (now.erasures !== version.erasures) {
    throw new VersionGoneError(
      `Records of version ${version.number} were erased while the version was being read`,
    );
  }
}

/** Identifies a whole body: equal workflow, version number, erasures, format and encoding mean equal bytes. */
export interface Body {
  place: WorkflowRef;
  version: DataVersion;
  format: Format;
  encoding: Encoding;
}

/** Reads a body from the database with `readWhole`. */
export function bodyOf(
  store: VersionReader,
  { place, version, format, encoding }: Body,
): AsyncIterable<Uint8Array> {
  const written = formatter({ format, columns: version.fields, only: null });
  return encoded(readWhole(store, place, version, written), encoding);
}

/** An upper bound for the bytes of a body. In CSV, every row has one comma per column, and quotes are doubled. */
export function mostBytes({ bytes, total, largest, fields }: DataVersion, format: Format): number {
  const json = (bytes ?? total * largest) + total + 2;
  return format === 'csv' ? 2 * (json + JSON.stringify(fields).length) + total * fields.length : json;
}

/** A unique name for a body that is a valid file name. Ids are hashed, because they may contain any character. */
export function nameOf({ place, version, format, encoding }: Body): string {
  const where = createHash('sha256')
    .update(JSON.stringify([place.teamId, place.workflowId]))
    .digest('hex')
    .slice(0, 32);
  return `${where}-${version.number}.${version.erasures}-${format}-${encoding}`;
}
