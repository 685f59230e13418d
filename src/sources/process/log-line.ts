/**
 * Parses a line of standard error: a log line with its level, or the progress of the run.
 *
 * Any program may write a line of JSON whose first key is `flowhook`:
 *
 *     {"flowhook":"progress","pages":12,"message":"Reading 2024"}
 *     {"flowhook":"log","level":"warn","text":"No e-mail address for 3 people"}
 *
 * The harness of modules does so for `ctx.progress` and `ctx.log`. Everything else is text, whose level is recognised in
 * the forms that common loggers write.
 */
import { LOG_LEVELS, type LogLevel } from '../../model/job.ts';

export type Said =
  | { kind: 'log'; level: LogLevel; text: string }
  | { kind: 'progress'; pages?: number; message?: string };

/** The beginning of lines that are meant for Flowhook. */
export const FOR_FLOWHOOK = '{"flowhook":';
const MAX_MESSAGE = 500;

const LEVELS: Readonly<Record<string, LogLevel>> = {
  trace: 'debug',
  debug: 'debug',
  info: 'info',
  notice: 'info',
  warn: 'warn',
  warning: 'warn',
  error: 'error',
  err: 'error',
  severe: 'error',
  critical: 'error',
  fatal: 'error',
  panic: 'error',
};
const NAMES = Object.keys(LEVELS).join('|');
/** `warn: …`, `[error] …`, `WARNING:root:…`. */
const AT_START = new RegExp(`^\\W{0,2}(${NAMES})\\s?[:\\]|>]`, 'i');
/** `WARNING …`, `2026-01-01 06:00:00,123 | INFO | …`: in capitals, after at most a time. */
const IN_CAPITALS = new RegExp(`^[\\d\\s:.,/TZ+|[\\]()-]{0,60}\\b(${NAMES.toUpperCase()})\\b`);

/** @param line must not hold a line break */
export function readLogLine(line: string): Said {
  if (line.startsWith('{')) {
    const said = parse(line);
    if (said?.flowhook === 'progress') return { kind: 'progress', ...readProgress(said) };
    if (said?.flowhook === 'log' && typeof said.text === 'string') {
      return { kind: 'log', level: levelNamed(said.level) ?? 'info', text: said.text };
    }
    return { kind: 'log', level: levelNamed(said?.level ?? said?.severity) ?? 'info', text: line };
  }
  const name = (AT_START.exec(line) ?? IN_CAPITALS.exec(line))?.[1];
  return { kind: 'log', level: levelNamed(name) ?? 'info', text: line };
}

function readProgress({ pages, message }: Record<string, unknown>): { pages?: number; message?: string } {
  return {
    ...(Number.isSafeInteger(pages) && (pages as number) >= 0 ? { pages: pages as number } : {}),
    ...(typeof message === 'string' ? { message: message.slice(0, MAX_MESSAGE) } : {}),
  };
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** A level by its name, or by its number as pino writes it (10 to 60). */
function levelNamed(level: unknown): LogLevel | undefined {
  if (typeof level === 'string') {
    const name = level.toLowerCase();
    // The text may be any, such as `constructor`.
    return Object.hasOwn(LEVELS, name) ? LEVELS[name] : undefined;
  }
  if (typeof level !== 'number') return undefined;
  return LOG_LEVELS[Math.min(Math.max(Math.floor(level / 10) - 2, 0), 3)];
}
