/**
 * Erases a person from every place that contains record contents. `find-person.ts` registers all of these places.
 *
 * Records are erased last, after those of quarantines. Until then, another erasure finds the same ids, so that repeating
 * an interrupted erasure completes it.
 */

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Problem } from '../model/error.ts';
import { EXTREMES, type Profile, withoutExtremes } from '../model/quality/profile.ts';
import type { Workflow, WorkflowRef } from '../model/workflow.ts';
import { ownTurn } from '../std/fair-share.ts';
import type { Sealer } from '../std/seal.ts';
import { isBackupName } from '../store/backup-files.ts';
import type { SuppressionRow } from '../store/operations/erasure/erase.ts';
import type { TextPlace } from '../store/operations/erasure/find-content.ts';
import { everyRow } from '../store/page.ts';
import type { Scrubbed, Store } from '../store/store.ts';
import { findAside, findRecords, findTexts, type Scope, TEXT_HOLDERS } from './find-person.ts';
import { createRedactor, isAddress, type Person, tracesOf } from './person.ts';
import { subjectHash, subjectKey } from './suppress.ts';

/** Maximum number of records that one transaction removes, and maximum number of their bytes. */
const MAX_RECORDS = 100;
const MAX_BYTES = 2 * 1_048_576;
/** Maximum number of texts that one transaction rewrites. */
const MAX_TEXTS = 50;
/** Maximum number of texts about the person that are searched for in the bytes of the database after the erasure. */
const MAX_TRACES = 100;
/** Maximum number of searches for the person. Each further search finds what was written during the previous search. */
const MAX_PASSES = 5;
/**
 * A database up to this size is rewritten if deleting did not overwrite all traces of the person. Rewriting takes about
 * a second.
 */
const REWRITE_BYTES = 100 * 1_048_576;

export interface ErasureDeps {
  /** A store that writes the author to the audit log: see `authoredBy`. */
  store: Store;
  sealer: Sealer;
  /** Where to look for copies of the database. */
  directories: readonly string[];
  /** Removes the cached response bodies of a workflow. */
  forget(place: { teamId: string; workflowId: string }): Promise<void>;
}

export interface ErasureRequest {
  teamId: string;
  /** Null: all workflows of the team. */
  workflowId: string | null;
  /** Exactly one of `email` and `id` must be set. An `id` is searched for in every workflow in scope. */
  email: string | null;
  id: string | null;
  /** Only reports what would be erased. */
  dryRun: boolean;
  /** Whether to also drop the person's records from later runs. */
  suppress: boolean;
  /** Whether to rewrite a database of any size if traces of the person remain. */
  rewrite?: boolean;
}

/** A place where the person was found. For `record`, `count` includes one row for each stored state of a record. */
export interface Found {
  workflowId: string | null;
  place: 'record' | TextPlace | 'definition';
  count: number;
}

export interface ErasureReport {
  dryRun: boolean;
  /** What was removed or redacted. With `dryRun`: what would have been removed or redacted. */
  found: Found[];
  /** What mentions the person but is not changed: records of other people, and workflow definitions. */
  left: Found[];
  suppressed: boolean;
  /**
   * The result of scrubbing the disk; null if scrubbing was skipped. Traces of the person that remain after a rewrite
   * are in rows that are kept.
   */
  disk: Scrubbed | null;
  /** Paths of copies of the database that are older than the erasure and may contain the person. */
  backups: string[];
}

/**
 * Finds a person and, unless `dryRun` is set, erases the person. Repeating an erasure is harmless.
 *
 * @throws Problem `workflow_not_found`, `field_invalid`
 */
export async function erase(deps: ErasureDeps, request: ErasureRequest): Promise<ErasureReport> {
  const { store } = deps;
  const { teamId, workflowId, dryRun } = request;
  const { scope, definitions } = await openScope(store, request);
  const person = personOf(request, scope);
  const found = new Counts();
  const left = new Counts();
  /** The workflows whose profiles the person's records may be in. */
  const theirs = new Set<string>();

  if (request.suppress && !dryRun) await suppress(deps, request, person);
  for (let pass = 1; pass <= MAX_PASSES; pass += 1) {
    const mentioned = new Counts();
    const records = await collect(store, scope, person, mentioned);
    for (const at of records.keys()) theirs.add(at);
    for await (const { held } of findTexts(store, scope, person, 'quarantined')) {
      if (held.workflowId !== null) theirs.add(held.workflowId);
    }
    let changed = 0;
    for (const at of theirs) changed += await eraseExtremes(store, { teamId, workflowId: at, dryRun, found });
    for (const place of Object.keys(TEXT_HOLDERS) as TextPlace[]) {
      changed += await eraseTexts(store, scope, person, { place, dryRun, found });
    }
    for (const [at, rows] of records) {
      found.add(at, 'record', rows.length);
      changed += rows.length;
      if (dryRun) continue;
      await removeRecords(store, { teamId, workflowId: at, rows });
    }
    if (pass === 1) left.addAll(mentioned);
    if (dryRun || changed === 0) break;
  }
  const { mentions } = createRedactor(person);
  for (const { id, definition } of definitions) {
    if (mentions(JSON.stringify(definition))) left.add(id, 'definition', 1);
  }

  const isLeft = left.list().length > 0;
  const isThere = found.list().length > 0;
  if (request.suppress && !dryRun && isThere) await suppress(deps, request, person);
  // The cached bodies are removed even if the person was not found, because an earlier erasure may have been
  // interrupted before this step.
  if (!dryRun) for (const at of scope.workflows) await deps.forget({ teamId, workflowId: at });
  const [scrubbed] = dryRun
    ? []
    : await Promise.allSettled([
        store.erasure.scrub({
          traces: tracesOf(person).slice(0, MAX_TRACES),
          // The database is not rewritten if mentions of the person remain intentionally, because every erasure would
          // find these traces again.
          rewriteBytes: request.rewrite ? Number.MAX_SAFE_INTEGER : isLeft ? 0 : REWRITE_BYTES,
        }),
      ]);
  const report: ErasureReport = {
    dryRun,
    found: found.list(),
    left: left.list(),
    suppressed: request.suppress && !dryRun,
    disk: scrubbed?.status === 'fulfilled' ? scrubbed.value : null,
    backups: await backupsIn(deps.directories),
  };
  if (!dryRun) {
    await store.audit.add({
      change: {
        teamId,
        action: 'records.erase',
        target: workflowId === null ? null : { kind: 'workflow', id: workflowId },
        summary: workflowId === null ? 'in every workflow' : '',
        subject: subjectOf(deps.sealer, request),
        details: { ...report, backups: report.backups.length },
      },
    });
  }
  // The error of scrubbing is thrown only after the audit line is written, because the erasure happened even if
  // scrubbing failed.
  if (scrubbed?.status === 'rejected') throw scrubbed.reason;
  return report;
}

/** @throws Problem `workflow_not_found` */
export async function openScope(
  store: Store,
  { teamId, workflowId }: { teamId: string; workflowId: string | null },
): Promise<{ scope: Scope; definitions: Pick<Workflow, 'id' | 'definition'>[] }> {
  const all = await Array.fromAsync(everyRow(store.workflows.list, { teamId, archived: true }));
  const definitions = workflowId === null ? all : all.filter(({ id }) => id === workflowId);
  if (workflowId !== null && definitions.length === 0) throw new Problem('workflow_not_found');
  return { scope: { teamId, workflowId, workflows: definitions.map(({ id }) => id) }, definitions };
}

/**
 * @param advice appended to the error sentence
 * @throws Problem `field_invalid` if the text is not an email address
 */
export function refuseNoAddress(email: string, advice = ''): void {
  if (isAddress(email)) return;
  const sentence = `\`email\` must be an email address, such as ada@example.com${advice}`;
  throw new Problem('field_invalid', { sentence });
}

function personOf({ email, id }: ErasureRequest, { workflows }: Scope): Person {
  const given = [email, id].filter((value) => value !== null);
  if (given.length !== 1 || given[0]?.trim() === '') {
    throw new Problem('field_invalid', { sentence: 'Give either `email` or `id`, as a non-empty string' });
  }
  if (email !== null) refuseNoAddress(email, '. Records without an address can be erased by `id`');
  return { email, ids: new Map(workflows.map((at) => [at, new Set(id === null ? [] : [id])])) };
}

interface TheirRow {
  seq: number;
  bytes: number;
}

/** Collects the person's rows by workflow. Repeats the search if it has found new ids of the person. */
async function collect(
  store: Store,
  scope: Scope,
  person: Person,
  mentioned: Counts,
): Promise<Map<string, TheirRow[]>> {
  for (let search = 1; ; search += 1) {
    const known = countIds(person);
    const records = new Map<string, TheirRow[]>();
    mentioned.clear();
    for await (const { workflowId, row, theirs } of findRecords(store, scope, person)) {
      if (!theirs) {
        mentioned.add(workflowId, 'record', 1);
        continue;
      }
      const rows = records.get(workflowId) ?? [];
      rows.push({ seq: row.seq, bytes: Buffer.byteLength(row.body) });
      records.set(workflowId, rows);
    }
    await findAside(store, scope, person);
    if (countIds(person) === known || search === MAX_PASSES) return records;
  }
}

function countIds({ ids }: Person): number {
  return [...ids.values()].reduce((count, some) => count + some.size, 0);
}

async function eraseTexts(
  store: Store,
  scope: Scope,
  person: Person,
  { place, dryRun, found }: { place: TextPlace; dryRun: boolean; found: Counts },
): Promise<number> {
  let changed = 0;
  let texts: { key: string; was: string; text: string }[] = [];
  const flush = async () => {
    if (texts.length > 0) await store.erasure.rewrite({ teamId: scope.teamId, place, texts });
    texts = [];
  };
  for await (const { held, cleaned } of findTexts(store, scope, person, place)) {
    found.add(held.workflowId, place, 1);
    changed += 1;
    if (dryRun) continue;
    texts.push({ key: held.key, was: held.text, text: cleaned });
    if (texts.length === MAX_TEXTS) await flush();
  }
  await flush();
  return changed;
}

/**
 * Removes the extremes from all profiles of a workflow that has had records of the person: the earlier states of its
 * records are pruned long before its profiles, so nobody knows which of them the person's values are in.
 */
async function eraseExtremes(
  store: Store,
  { teamId, workflowId, dryRun, found }: WorkflowRef & { dryRun: boolean; found: Counts },
): Promise<number> {
  const place = 'profile';
  const needles = EXTREMES.map((name) => `"${name}":`);
  let changed = 0;
  let after: string | null = null;
  do {
    await ownTurn(teamId);
    const page = await store.erasure.scanTexts({ teamId, workflowId, place, needles, after });
    const texts = page.texts.map(({ key, text }) => {
      return { key, was: text, text: JSON.stringify(withoutExtremes(JSON.parse(text) as Profile)) };
    });
    if (texts.length > 0) found.add(workflowId, place, texts.length);
    changed += texts.length;
    for (let start = 0; !dryRun && start < texts.length; start += MAX_TEXTS) {
      await store.erasure.rewrite({ teamId, place, texts: texts.slice(start, start + MAX_TEXTS) });
    }
    after = page.next;
  } while (after !== null);
  return changed;
}

async function removeRecords(
  store: Store,
  { teamId, workflowId, rows }: { teamId: string; workflowId: string; rows: readonly TheirRow[] },
): Promise<void> {
  let seqs = new Set<number>();
  let bytes = 0;
  const flush = async () => {
    if (seqs.size > 0) await store.erasure.remove({ teamId, workflowId, seqs: [...seqs] });
    seqs = new Set();
    bytes = 0;
  };
  for (const row of rows) {
    // All rows of a record are consecutive, and one transaction removes all of them.
    if (!seqs.has(row.seq) && (seqs.size === MAX_RECORDS || bytes + row.bytes > MAX_BYTES)) await flush();
    seqs.add(row.seq);
    bytes += row.bytes;
  }
  await flush();
}

/**
 * Suppresses the given address or id, and all ids that were found, because the address of the person may have changed.
 */
async function suppress(deps: ErasureDeps, request: ErasureRequest, person: Person): Promise<void> {
  const { teamId, email } = request;
  const key = subjectKey(deps.sealer, teamId);
  const entries: SuppressionRow[] = [...person.ids].flatMap(([workflowId, ids]) =>
    [...ids].map((id) => ({ workflowId, kind: 'id' as const, hash: subjectHash(key, 'id', id) })),
  );
  if (email !== null) {
    entries.push({
      workflowId: request.workflowId ?? '',
      kind: 'email',
      hash: subjectHash(key, 'email', email),
    });
  }
  for (let start = 0; start < entries.length; start += MAX_RECORDS) {
    await deps.store.erasure.suppress({ teamId, entries: entries.slice(start, start + MAX_RECORDS) });
  }
}

/** A keyed hash that represents the person in the audit log. */
export function subjectOf(
  sealer: Sealer,
  { teamId, email, id }: Pick<ErasureRequest, 'teamId' | 'email' | 'id'>,
): string {
  const key = subjectKey(sealer, teamId);
  return email !== null ? subjectHash(key, 'email', email) : subjectHash(key, 'id', id ?? '');
}

/**
 * Lists backups, copies made before migrations, and databases replaced by a restore. All of these copies are older than
 * the erasure.
 */
async function backupsIn(directories: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const directory of directories) {
    for (const name of await readdir(directory).catch(() => [])) {
      if (isBackupName(name) || /\.backup|\.replaced-/.test(name)) found.add(join(directory, name));
    }
    const kept = join(directory, 'backups');
    for (const name of await readdir(kept).catch(() => [])) {
      if (!name.startsWith('.') && !name.endsWith('.json')) found.add(join(kept, name));
    }
  }
  return [...found].sort();
}

/** Counts findings by workflow and place. */
class Counts {
  readonly #counts = new Map<string, Found>();

  add(workflowId: string | null, place: Found['place'], count: number): void {
    const key = JSON.stringify([workflowId, place]);
    const before = this.#counts.get(key)?.count ?? 0;
    this.#counts.set(key, { workflowId, place, count: before + count });
  }

  addAll(other: Counts): void {
    for (const { workflowId, place, count } of other.list()) this.add(workflowId, place, count);
  }

  clear(): void {
    this.#counts.clear();
  }

  list(): Found[] {
    return [...this.#counts.values()];
  }
}
