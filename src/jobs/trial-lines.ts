/** Looks at the lines of a run while they pass: the first records, how many, and who waited for whom. */
import { InvalidRecordError, readRecord } from '../model/record.ts';

/** Records that are kept to be shown. */
const SHOWN = 10;
/** Lines of a batch that are looked at for them: of a run whose records are all invalid, not every one. */
const LOOKED_AT = 20;

/** What was seen. Grows while the lines are read. */
export interface SeenLines {
  records: Record<string, unknown>[];
  emitted: number;
  /** From the start to the first line, or to the end of a run without any. */
  startingMs: number;
  /** Waiting for the source after its first line. */
  producingMs: number;
  /** The source waiting for its lines to be checked. */
  checkingMs: number;
}

/**
 * @param watch started when the source was
 * @param tell told the number of records so far
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

export interface Stopwatch {
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
