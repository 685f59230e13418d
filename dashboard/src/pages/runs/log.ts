/** The rows of a log view: lines, and notes where an attempt starts or lines are missing. */
import type { LogLine } from '../../../../client/src/flowhook-client.ts';
import { many } from '../../parts/format.ts';

export type Line = LogLine & { attempt?: number };

type LogRow = { kind: 'line'; key: string; line: Line } | { kind: 'note'; key: string; text: string };

/** @param by.search text that a line must contain; a search leaves out notes */
export function logRows(
  lines: readonly Line[],
  { search, isNewestFirst }: { search: string; isNewestFirst: boolean },
): LogRow[] {
  const wanted = search.toLowerCase();
  const rows: LogRow[] = [];
  let before: Line | undefined;
  for (const line of lines) {
    const key = `${line.attempt ?? 1} ${line.seq}`;
    const note = wanted === '' ? noteBetween(before, line) : undefined;
    if (note !== undefined) rows.push({ kind: 'note', key: `before ${key}`, text: note });
    if (line.text.toLowerCase().includes(wanted)) rows.push({ kind: 'line', key, line });
    before = line;
  }
  return isNewestFirst ? rows.reverse() : rows;
}

/** The log as a text file, with times in UTC. */
export function plainLog(lines: readonly Line[]): string {
  return lines.map(({ time, level, text }) => `${time} ${level.padEnd(5)} ${text}\n`).join('');
}

/** The service keeps the start and the end of a long log. */
function noteBetween(before: Line | undefined, line: Line): string | undefined {
  const attempt = line.attempt ?? 1;
  const isNew = before === undefined || (before.attempt ?? 1) !== attempt;
  if (isNew && before !== undefined) return `Attempt ${attempt}`;
  const missing = line.seq - (isNew ? 0 : before.seq) - 1;
  return missing > 0 ? `${many(missing, 'line')} omitted: the log is too long` : undefined;
}
