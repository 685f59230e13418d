/** Fills the database of a trial with what is published, so that a run can be compared with it. */
import type { Held } from '../model/job.ts';
import type { Definition } from '../model/workflow.ts';
import { silentLogger } from '../observe/log.ts';
import { ingest } from '../records/ingest.ts';
import type { Ingester } from '../records/ingester.ts';
import type { Place } from '../records/read.ts';
import type { DataVersion } from '../store/record-operations.ts';
import type { Store } from '../store/store.ts';

/** Rows of a published version that are copied at once, and some so many bytes. */
const COPIED_ROWS = 500;
const COPIED_BYTES = 1_048_576;
/** Nobody else claims in that database, and nothing renews a lease. */
const LEASE_MS = 365 * 86_400_000;

/** A database of its own, with one workflow in it. */
export interface Scratch {
  store: Store;
  ingester: Ingester;
  place: Place;
}

/** Where the published records are. */
export interface Published {
  store: Store;
  place: Place;
  version: DataVersion;
}

/**
 * Publishes the records of a version in the trial's database, as its version 1.
 *
 * @throws the signal's reason
 */
export async function copyPublished(
  scratch: Scratch,
  published: Published,
  definition: Definition,
  { signal, tell }: { signal: AbortSignal; tell: (records: number) => void },
): Promise<void> {
  const held = await beginJob(scratch);
  const ingested = await ingest(
    { ...scratch, log: silentLogger },
    {
      held,
      // They bring their ids, and have been taken before.
      definition: {
        ...definition,
        key: [],
        mode: 'upsert',
        limits: { ...definition.limits, records: Number.MAX_SAFE_INTEGER },
      },
      lines: linesOf(published, signal, tell),
    },
  );
  const guards = { minRecords: 0, maxDropPercent: null };
  await scratch.store.records.publish({ held, guards, state: null, fields: ingested.fields });
}

/** Begins a job of the trial's workflow. */
export async function beginJob({ store, place }: Scratch): Promise<Held> {
  await store.jobs.enqueue({ ...place, origin: 'cli', idempotencyKey: null });
  const [claimed] = await store.jobs.claim({ nodeId: 'trial', limit: 1, leaseMs: LEASE_MS, perTeam: 1 });
  if (claimed === undefined) throw new Error('The trial could not begin its job');
  return { teamId: place.teamId, jobId: claimed.job.id, attempt: claimed.job.attempt };
}

async function* linesOf(
  { store, place, version }: Published,
  signal: AbortSignal,
  tell: (records: number) => void,
): AsyncGenerator<string[]> {
  const most = Math.floor(COPIED_BYTES / Math.max(1, version.largest));
  const rows = Math.max(1, Math.min(COPIED_ROWS, most));
  let afterSeq = 0;
  for (let copied = 0; ; ) {
    signal.throwIfAborted();
    const page = await store.records.page({
      ...place,
      version: version.number,
      afterSeq,
      rows,
      separator: '\n',
    });
    if (page.count === 0) return;
    yield Buffer.from(page.json).toString().split('\n');
    afterSeq = page.lastSeq;
    copied += page.count;
    tell(copied);
  }
}
