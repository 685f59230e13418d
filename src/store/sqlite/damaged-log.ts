/**
 * Searches the write-ahead log for damage before SQLite opens it. SQLite reads a log up to the first page with a wrong
 * checksum. It treats this page as the end of the log, without an error, even if committed transactions follow.
 *
 * A power failure can leave a page half written, but only in the last transaction, which was never acknowledged. Pages
 * of an earlier log have different salts. So if this log has more than one commit after the damage, acknowledged writes
 * are lost.
 *
 * https://sqlite.org/fileformat2.html#the_write_ahead_log
 */
import { closeSync, openSync, readSync } from 'node:fs';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The number at the start of every log. Its last bit gives the byte order for calculating checksums. */
const MAGIC = 0x377f0682;

export interface LogDamage {
  /** Number of commits after the damage, which SQLite will not read. Null if the header of the log is damaged. */
  commits: number | null;
}

/** Returns undefined if there is no log, if the log is intact, or if only its last transaction can be damaged. */
export function findDamage(databasePath: string): LogDamage | undefined {
  let file: number;
  try {
    file = openSync(`${databasePath}-wal`, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const damage = readLog(file);
    return damage !== undefined && damage.commits !== null && damage.commits < 2 ? undefined : damage;
  } finally {
    closeSync(file);
  }
}

function readLog(file: number): LogDamage | undefined {
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const length = readSync(file, header, 0, HEADER_BYTES, 0);
  if (length < HEADER_BYTES) return undefined;
  const isLittle = header.getUint32(0) === MAGIC;
  const sum: Checksum = [0, 0];
  add(sum, header, { from: 0, to: 24, isLittle });
  const isHeader = (isLittle || header.getUint32(0) === MAGIC + 1) && isSum(sum, header, 24);
  const pageBytes = isHeader ? header.getUint32(8) : 4_096;
  const frame = new DataView(new ArrayBuffer(FRAME_HEADER_BYTES + pageBytes));
  let isWhole = isHeader;
  let frames = 0;
  let commits = 0;
  for (let at = HEADER_BYTES; ; at += frame.byteLength) {
    if (readSync(file, frame, 0, frame.byteLength, at) < frame.byteLength) break;
    frames += 1;
    const isOfThisLog =
      header.getUint32(16) === frame.getUint32(8) && header.getUint32(20) === frame.getUint32(12);
    if (isWhole) {
      add(sum, frame, { from: 0, to: 8, isLittle });
      add(sum, frame, { from: FRAME_HEADER_BYTES, to: frame.byteLength, isLittle });
      isWhole = isOfThisLog && isSum(sum, frame, 16);
    }
    // This field has the size of the database in the last frame of a transaction, and 0 in all other frames.
    if (!isWhole && isOfThisLog && frame.getUint32(4) !== 0) commits += 1;
  }
  if (!isHeader) return frames > 0 ? { commits: null } : undefined;
  return commits > 0 ? { commits } : undefined;
}

type Checksum = [number, number];

function add(sum: Checksum, view: DataView, part: { from: number; to: number; isLittle: boolean }): void {
  let [first, second] = sum;
  for (let at = part.from; at < part.to; at += 8) {
    first = (first + view.getUint32(at, part.isLittle) + second) | 0;
    second = (second + view.getUint32(at + 4, part.isLittle) + first) | 0;
  }
  sum[0] = first;
  sum[1] = second;
}

function isSum(sum: Checksum, view: DataView, at: number): boolean {
  return sum[0] === view.getInt32(at) && sum[1] === view.getInt32(at + 4);
}
