/** Observes the lines of a trial run: keeps the first records, counts, and measures who waits for whom. */
import { InvalidRecordError, readRecord } from '../model/record.ts';

/** Records that are kept to be shown. */
const SHOWN = 10;
/** Lines of each batch that are parsed to find them: a run with only invalid records must not be parsed twice. */
const LOOKED_AT = 20;

/** What was observed; updated while the lines are read. */
export interface SeenLines {
  records: Record<string, unknown>[];
  emitted: number;
  /** From the start to the first line, or to the end of a run without lines. */
  startingMs: number;
  /** Time spent waiting for the source after its first line. */
  producingMs: number;
  /** Time the source spent waiting for its lines to be checked. */
  checkingMs: number;
}

/**
 * @param options.watch must be started together with the source
 * @param options.tell called with the number of records so far
 */
export async function* watchLines(
  batches: AsyncIterable<string[]>,
  seen: SeenLines,
  { key, watch, tell }: { key: readonly string[]; watch: Stopwatch; tell: (records: number) => void },
): AsyncGenerator<string[]> {
  for await (const batch of batches) {
    waited();
    if (seen.records.length < SHOWN) {
      const valid = batch.slice(0, LOOKED_AT).flatMap((line) => validRecord(line, key));
      seen.records.push(...valid.slice(0, SHOWN - seen.records.length));
    }
    seen.emitted += batch.length;
    tell(seen.emitted);
    yield batch;
    seen.checkingMs += watch.lap();
  }
  waited();

  function waited(): void {
    if (seen.emitted === 0) seen.startingMs += watch.lap();
    else seen.producingMs += watch.lap();
  }
}

interface Stopwatch {
  /** Milliseconds since the last lap, or the start. */
  lap(): number;
  /** Milliseconds since the start. */
  total(): number;
}

export function stopwatch(): Stopwatch {
  const startedAt = performance.now();
  let lapAt = startedAt;
  return {
    lap() {
      const now = performance.now();
      const ms = now - lapAt;
      lapAt = now;
      return ms;
    },
    total: () => performance.now() - startedAt,
  };
}

function validRecord(line: string, key: readonly string[]): Record<string, unknown>[] {
  try {
    return [JSON.parse(readRecord(line, key).body)];
  } catch (error) {
    if (error instanceof InvalidRecordError) return [];
    throw error;
  }
}
