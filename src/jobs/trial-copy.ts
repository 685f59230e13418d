/** Copies the published records into the database of a trial run, so that the run can be compared with them. */
import type { Held } from '../model/job.ts';
import type { Definition } from '../model/workflow.ts';
import { ingest } from '../records/ingest.ts';
import type { Ingester } from '../records/ingester.ts';
import { PARSED_ROWS, type Place, pageRows } from '../records/read.ts';
import type { DataVersion } from '../store/operations/versions.ts';
import type { Store } from '../store/store.ts';

/** Nothing else claims jobs in that database, and nothing renews the lease. */
const LEASE_MS = 365 * 86_400_000;

/** The temporary database of a trial run, which holds one workflow. */
export interface Scratch {
  store: Store;
  ingester: Ingester;
  place: Place;
}

/** The published records to copy. */
interface Published {
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
    { ...scratch, onSkipped: () => {} },
    {
      held,
      // The records have ids, and were valid when they were published.
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
  const rows = pageRows(version, PARSED_ROWS);
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
