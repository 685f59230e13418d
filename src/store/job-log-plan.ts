/**
 * How the log of an attempt is stored: in rows of several lines each, in two parts, the beginning of the log and its
 * end; what lies between is dropped. Plans what a report adds to them, for every driver.
 */
import { type LogLine, logLineBytes } from '../model/job.ts';

/** How many bytes of lines are kept of the beginning of a log and, at least, of its end. */
const PART_BYTES = 1_048_576;
/** Characters that are kept of one line. */
const MAX_LINE = 32_768;

export const BEGINNING = 0;
export const END = 1;

/** An existing row: its first and its last line, and the bytes of its texts. */
export interface LogChunk {
  seq: number;
  last_seq: number;
  bytes: number;
}

/** Lines to append to the row of a part that begins at `seq`, which is created if it does not exist. */
export interface LogAddition {
  part: typeof BEGINNING | typeof END;
  seq: number;
  lastSeq: number;
  bytes: number;
  /** One JSON array a line: [seq, at, level, text]. */
  body: string;
}

/**
 * What to add, and afterwards the line before which rows of the end are to be deleted (0: none). Skips lines that are
 * already stored, so that a report can be retried when its answer was lost.
 *
 * @param input.chunkBytes how many bytes of texts a row may hold, unless it has a single line
 */
export function planLog(input: {
  beginning: readonly LogChunk[];
  end: readonly LogChunk[];
  lines: readonly LogLine[];
  chunkBytes: number;
}): { additions: LogAddition[]; dropBefore: number } {
  const { beginning, end, lines, chunkBytes } = input;
  const last = end.at(-1) ?? beginning.at(-1);
  const fresh = lines.filter(({ seq }) => seq > (last?.last_seq ?? 0)).map(measure);

  const first = end.length > 0 ? [] : fresh.slice(0, fitting(fresh, PART_BYTES - sum(beginning)));
  const later = fresh.slice(first.length);
  // Of very many lines, leaves out those that would be deleted at once.
  const kept = later.slice(endFrom(later));
  const toEnd = additions(END, end.at(-1), kept, chunkBytes);
  return {
    additions: [...additions(BEGINNING, beginning.at(-1), first, chunkBytes), ...toEnd],
    dropBefore: toEnd.length === 0 ? 0 : dropBefore(end, toEnd),
  };
}

/** Reads a stored line back. */
export function toLogLine(json: string): LogLine {
  const [seq, at, level, text] = JSON.parse(json) as [number, number, LogLine['level'], string];
  return { seq, at, level, text };
}

/** A line as it is stored, with its size. */
interface Measured {
  seq: number;
  json: string;
  bytes: number;
}

function measure({ seq, at, level, text }: LogLine): Measured {
  const kept = text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text;
  return { seq, json: JSON.stringify([seq, at, level, kept]), bytes: logLineBytes(kept) };
}

function sum(items: readonly { bytes: number }[]): number {
  return items.reduce((bytes, item) => bytes + item.bytes, 0);
}

/** How many of the first items fit into `room` bytes. */
function fitting(items: readonly { bytes: number }[], room: number): number {
  let bytes = 0;
  const beyond = items.findIndex((item) => {
    bytes += item.bytes;
    return bytes > room;
  });
  return beyond === -1 ? items.length : beyond;
}

/** The index from which on the items have at least as many bytes as are kept of the end of a log. */
function endFrom(items: readonly { bytes: number }[]): number {
  let bytes = 0;
  const place = items.findLastIndex((item) => {
    bytes += item.bytes;
    return bytes >= PART_BYTES;
  });
  return Math.max(0, place);
}

/** Adds lines to the last row of a part until it is full, then to new ones. */
function additions(
  part: LogAddition['part'],
  last: LogChunk | undefined,
  lines: readonly Measured[],
  chunkBytes: number,
): LogAddition[] {
  const added: LogAddition[] = [];
  let bytes = last?.bytes ?? 0;
  for (const line of lines) {
    const row = added.at(-1);
    const isFull = bytes > 0 && bytes + line.bytes > chunkBytes;
    if (isFull) bytes = 0;
    bytes += line.bytes;
    if (row === undefined || isFull) {
      const seq = row === undefined && !isFull && last !== undefined ? last.seq : line.seq;
      added.push({ part, seq, lastSeq: line.seq, bytes: line.bytes, body: line.json });
      continue;
    }
    row.lastSeq = line.seq;
    row.bytes += line.bytes;
    row.body += `\n${line.json}`;
  }
  return added;
}

/** Drops about as much from the beginning of the end as was added after it. */
function dropBefore(end: readonly LogChunk[], added: readonly LogAddition[]): number {
  const sizes = new Map(end.map(({ seq, bytes }) => [seq, bytes]));
  for (const { seq, bytes } of added) sizes.set(seq, (sizes.get(seq) ?? 0) + bytes);
  const rows = [...sizes].map(([seq, bytes]) => ({ seq, bytes }));
  return rows[endFrom(rows)]?.seq ?? 0;
}
