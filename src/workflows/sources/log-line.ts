/**
 * What a line of standard error says: a line of the log with its level, or how far the run has come.
 *
 * Any program may write a line of JSON whose first key is `flowhook`:
 *
 *     {"flowhook":"progress","pages":12,"message":"Reading 2024"}
 *     {"flowhook":"log","level":"warn","text":"No e-mail address for 3 people"}
 *
 * The harness of modules does, for `ctx.progress` and `ctx.log`. Everything else is text; its level is recognised
 * where it is written as loggers write it.
 */
import { LOG_LEVELS, type LogLevel } from '../../model/job.ts';

/** What one line says. */
export type Said =
  | { kind: 'log'; level: LogLevel; text: string }
  | { kind: 'progress'; pages?: number; message?: string };

/** How the lines begin that a program writes for Flowhook. */
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
/** `WARNING …`, `2026-01-01 06:00:00,123 | INFO | …`: in capitals, after nothing but a time. */
const IN_CAPITALS = new RegExp(`^[\\d\\s:.,/TZ+|[\\]()-]{0,60}\\b(${NAMES.toUpperCase()})\\b`);

/** Reads one line, which must not hold a line break. */
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
    // Any program may write `constructor` here.
    return Object.hasOwn(LEVELS, name) ? LEVELS[name] : undefined;
  }
  if (typeof level !== 'number') return undefined;
  return LOG_LEVELS[Math.min(Math.max(Math.floor(level / 10) - 2, 0), 3)];
}
