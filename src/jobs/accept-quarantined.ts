/**
 * Accepts records from the quarantine of a workflow: publishes them as they are, by a job of origin `push` that skips the
 * expectations. The records leave the quarantine in the transaction that publishes them.
 */
import { Problem } from '../model/error.ts';
import { EXPECT_NOTHING } from '../model/quality/expect.ts';
import type { Quarantined } from '../model/quality/quarantine.ts';
import type { WorkflowRef } from '../model/workflow.ts';
import { countWords } from '../std/amounts.ts';
import type { QuarantineCursor, QuarantineSelection } from '../store/operations/quarantine/entries.ts';
import type { Store } from '../store/store.ts';
import type { Producer } from './attempt.ts';
import type { JobNow, Pushed, PushJobs } from './push-job.ts';

/** Maximum number of entries per page. */
const ENTRIES_AT_ONCE = 200;

/**
 * Why a record that the caller named stays as it is: `published`: a newer record with this id was published; `set_aside_again`:
 * a job after `untilJobId` has set another record with this id aside; `not_found`: there is no record with this id.
 */
export const CONFLICTS = ['published', 'set_aside_again', 'not_found'] as const;
export interface Conflict {
  id: string;
  reason: (typeof CONFLICTS)[number];
}

/** The selection without the records that the caller cannot mean, which are named. */
export interface Resolved {
  selection: QuarantineSelection;
  conflicts: Conflict[];
  /** Whether any record is selected. */
  isEmpty: boolean;
}

/** Finds out which of the selected records are in the quarantine, and why the others are not. */
export async function resolveSelection(
  store: Store,
  at: WorkflowRef,
  selection: QuarantineSelection,
): Promise<Resolved> {
  const { ids, untilJobId } = selection;
  if (ids === undefined) {
    const { entries } = await store.quarantine.list({ ...at, ...selection, limit: 1 });
    return { selection, conflicts: [], isEmpty: entries.length === 0 };
  }
  const wanted = [...new Set(ids)];
  const found = await store.quarantine.find({ ...at, ids: wanted });
  const jobs = new Map(found.map(({ id, jobId }) => [id, jobId]));
  const conflicts: Conflict[] = [];
  for (const id of wanted) {
    const jobId = jobs.get(id);
    if (jobId === undefined) {
      const isPublished = await store.quarantine.isPublished({ ...at, id });
      conflicts.push({ id, reason: isPublished ? 'published' : 'not_found' });
    } else if (untilJobId !== undefined && jobId > untilJobId)
      conflicts.push({ id, reason: 'set_aside_again' });
  }
  const refused = new Set(conflicts.map(({ id }) => id));
  const left = wanted.filter((id) => !refused.has(id));
  return { selection: { ...selection, ids: left }, conflicts, isEmpty: left.length === 0 };
}

/** A request to accept records. */
export interface Acceptance extends Omit<JobNow, 'anySource' | 'idempotencyKey'> {
  selection: QuarantineSelection;
  /** Reads the quarantine, and names the author in the audit log. */
  store: Store;
  /** Called before publishing. Throws if the client is no longer allowed to accept. */
  confirm?: () => Promise<void>;
}

/**
 * Runs one job that accepts the selected records. If it throws, nothing was published.
 *
 * @throws Problem `workflow_not_found`; `quarantine_conflict` if no selected record is in the quarantine; what
 *   `PushJobs.run` throws, except `not_push`
 */
export async function acceptQuarantined(
  pushes: PushJobs,
  { selection, confirm, ...job }: Acceptance,
): Promise<Pushed & { accepted: number; conflicts: Conflict[] }> {
  const { store, teamId, workflowId } = job;
  const at = { teamId, workflowId };
  const workflow = await store.workflows.get({ teamId, id: workflowId });
  if (workflow === undefined || workflow.archivedAt !== null) throw new Problem('workflow_not_found');
  // Most requests that can accept nothing are refused before they wait for other jobs.
  let resolved = refuseEmpty(await resolveSelection(store, at, selection));
  let accepted = 0;
  const pushed = await pushes.runWith({ ...job, idempotencyKey: null, anySource: true }, (claimed, outer) => {
    const { definition } = claimed.workflow;
    const stop = new AbortController();
    const end = () => stop.abort(new Error('The job was stopped'));
    const signal = AbortSignal.any([outer, stop.signal]);
    const producer: Producer = {
      what: 'push',
      definition: {
        ...definition,
        // A mode must not change more of the published records than the mode of the workflow.
        mode: definition.mode === 'append' ? 'append' : 'upsert',
        // The records have ids already.
        key: [],
        expect: EXPECT_NOTHING,
      },
      signal: outer,
      once: true,
      accepts: true,
      tooSlow: (seconds) => `Accepting took longer than ${seconds} s. Accept fewer records at a time`,
      async start({ reporter }) {
        // No other job runs now, so that the quarantine can only get smaller.
        resolved = refuseEmpty(await resolveSelection(store, at, selection));
        reporter.line('info', 'Accepting records from the quarantine');
        let bytes = 0;
        const batches = readSelected(store, { ...at, ...resolved.selection }, signal, (read) => {
          bytes += read.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
        });
        return {
          batches,
          get bytes() {
            return bytes;
          },
          end: Promise.resolve({ ok: true, state: undefined }),
          stop: end,
          kill: end,
        };
      },
      onIngested({ records, suppressed }) {
        accepted = records - suppressed;
      },
      ...(confirm === undefined ? {} : { confirm }),
    };
    return producer;
  });
  return { ...pushed, accepted, conflicts: resolved.conflicts };
}

/** @throws Problem `quarantine_conflict`, with the first records that cannot be accepted */
function refuseEmpty(resolved: Resolved): Resolved {
  if (!resolved.isEmpty) return resolved;
  throw new Problem('quarantine_conflict', { sentence: conflictSentence(resolved.conflicts) });
}

/** Records that a sentence names. */
const NAMED = 5;
/** After the id of the record. */
export const CONFLICT_WORDS: Readonly<Record<Conflict['reason'], string>> = {
  published: 'a newer record with this ID was published',
  set_aside_again: 'a later job has set another record with this ID aside',
  not_found: 'there is no record with this ID in the quarantine',
};

function conflictSentence(conflicts: readonly Conflict[]): string {
  if (conflicts.length === 0) return 'Nothing can be accepted: no record in the quarantine matches';
  const named = conflicts
    .slice(0, NAMED)
    .map(({ id, reason }) => `${JSON.stringify(id)}: ${CONFLICT_WORDS[reason]}`);
  const more =
    conflicts.length > NAMED ? `; and ${countWords(conflicts.length - NAMED, 'other record')}` : '';
  return `Nothing can be accepted: ${named.join('; ')}${more}. List the quarantine again`;
}

/** Yields the selected entries, a page at a time. */
export async function* quarantinePages(
  store: Store,
  selection: WorkflowRef & QuarantineSelection,
): AsyncGenerator<readonly Quarantined[]> {
  for (let after: QuarantineCursor | undefined; ; ) {
    const page = await store.quarantine.list({ ...selection, after, limit: ENTRIES_AT_ONCE });
    if (page.entries.length > 0) yield page.entries;
    if (page.next === null) return;
    after = page.next;
  }
}

/** Yields the JSON texts of the selected records, a page at a time. */
async function* readSelected(
  store: Store,
  selection: WorkflowRef & QuarantineSelection,
  signal: AbortSignal,
  onRead: (lines: readonly string[]) => void,
): AsyncGenerator<string[]> {
  signal.throwIfAborted();
  for await (const entries of quarantinePages(store, selection)) {
    const lines = entries.map(({ body }) => body);
    onRead(lines);
    yield lines;
    signal.throwIfAborted();
  }
}
