/**
 * Reads a child's standard error. Every line goes to the log, and the last lines are kept for the error message.
 *
 * Any program can report its progress, or the level of a line, with a line of JSON whose first key is `flowhook`:
 *
 *     {"flowhook":"progress","pages":12,"message":"Reading 2024"}
 *     {"flowhook":"log","level":"warn","text":"No e-mail address for 3 people"}
 *
 * The harness of modules does this for `ctx.progress` and `ctx.log`. Everything else is text, whose level is recognized in
 * the formats of common loggers.
 */
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import { LOG_LEVELS, type LogLevel } from '../../model/job.ts';
import { createMask } from '../secrets.ts';

const KEPT_LINES = 20;
/** A longer line is split. */
const MAX_LINE_CHARACTERS = 8_192;
/** Maximum length of a line with JSON for Flowhook. Such a line cannot be split. */
const MAX_FLOWHOOK_CHARACTERS = 65_536;
/**
 * After a burst of this size, reading pauses for `BURST_MS`, so that a flood of log lines does not keep the server
 * busy.
 */
const BURST_BYTES = 1 << 20;
const BURST_MS = 250;
/** A fixed cost that is added to the bytes of each line, because a flood of short lines is the most expensive. */
const LINE_BYTES = 200;
/** Maximum number of lines to process in one turn of the event loop. */
const LINES_A_TURN = 500;

interface Stderr {
  /** Returns the last 20 lines, at most 8 KiB. */
  tail(): string;
  /** Ends the throttling. Call this once the child has ended, because there is then little left to read. */
  hurry(): void;
  /** Resolves when the stream is closed and all lines have been processed. */
  over: Promise<void>;
}

/** Receives the lines that a child writes to standard error. */
export interface Listener {
  onLog(line: { level: LogLevel; text: string }): void;
  onProgress(said: { pages?: number; message?: string }): void;
}

/** Reads a stream to its end. Secrets are replaced with `***`, because logs and errors are stored and forwarded. */
export function followStderr(
  stream: Readable,
  options: { secrets: ReadonlyMap<string, string> } & Listener,
): Stderr {
  const decoder = new StringDecoder();
  const mask = createMask(options.secrets);
  const kept: string[] = [];
  let partial = '';
  let burst = 0;
  let waiting: string[] = [];
  /** The number of lines in `waiting` that have been processed. */
  let done = 0;
  let isWorking = false;
  let isHurried = false;
  let isEnded = false;
  const over = Promise.withResolvers<void>();
  let throttle: NodeJS.Timeout | undefined;

  function read(line: string): void {
    const said = readLogLine(stripVTControlCharacters(line).trimEnd());
    if (said.kind === 'progress') {
      const { kind: _, ...progress } = said;
      options.onProgress({
        ...progress,
        ...(said.message === undefined ? {} : { message: mask.clean(said.message).trimEnd() }),
      });
      return;
    }
    for (const text of said.text.split(/\r\n|[\r\n]/)) keep(said.level, mask.clean(text).trimEnd());
  }

  function keep(level: LogLevel, line: string): void {
    for (let at = 0; at < line.length; at += MAX_LINE_CHARACTERS) {
      const text = line.slice(at, at + MAX_LINE_CHARACTERS);
      options.onLog({ level, text });
      kept.push(text);
      if (kept.length > KEPT_LINES) kept.shift();
    }
  }

  /**
   * Splits a line that is too long, but never within a secret. If the end of the text could be the start of a secret,
   * it is held back until more text arrives.
   */
  function cut(): void {
    const most = partial.startsWith(FOR_FLOWHOOK) ? MAX_FLOWHOOK_CHARACTERS : MAX_LINE_CHARACTERS;
    if (partial.length <= most) return;
    const masked = mask.apply(partial);
    const end = Math.max(masked.length - mask.longest + 1, 0);
    read(masked.slice(0, end));
    partial = masked.slice(end);
  }

  /** Processes the waiting lines in slices, and then resumes the stream. */
  function work(): void {
    for (const line of waiting.slice(done, done + LINES_A_TURN)) read(line);
    done += LINES_A_TURN;
    isWorking = done < waiting.length;
    if (isWorking) {
      setImmediate(work);
      return;
    }
    waiting = [];
    done = 0;
    cut();
    if (isEnded) finish();
    else if (burst > BURST_BYTES && !isHurried) throttle = setTimeout(resume, BURST_MS);
    else stream.resume();
  }

  function resume(): void {
    burst = 0;
    stream.resume();
  }

  function finish(): void {
    read(partial + decoder.end());
    partial = '';
    over.resolve();
  }

  stream.on('data', (chunk: Buffer) => {
    stream.pause();
    // Progress bars end their lines with a carriage return but no line feed.
    const lines = (partial + decoder.write(chunk)).split(/\r\n|[\r\n]/);
    partial = lines.pop() ?? '';
    burst += chunk.length + lines.length * LINE_BYTES;
    // Node resumes the stream when the process has ended, so some lines may still be waiting when new lines arrive.
    waiting = waiting.concat(lines);
    if (!isWorking) work();
  });
  // A broken pipe must end only the log, and not the server.
  stream.on('error', () => {});
  stream.once('close', () => {
    isEnded = true;
    clearTimeout(throttle);
    if (!isWorking) finish();
  });

  return {
    over: over.promise,
    hurry: () => {
      isHurried = true;
      if (throttle === undefined) return;
      clearTimeout(throttle);
      stream.resume();
    },
    tail: () => {
      let text = '';
      for (const line of kept.toReversed()) {
        if (text.length + line.length > MAX_LINE_CHARACTERS) break;
        text = text === '' ? line : `${line}\n${text}`;
      }
      return text;
    },
  };
}

type Said =
  | { kind: 'log'; level: LogLevel; text: string }
  | { kind: 'progress'; pages?: number; message?: string };

/** The start of lines for Flowhook. */
const FOR_FLOWHOOK = '{"flowhook":';
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
/** A level in capitals, possibly after a time: `WARNING …`, `2026-01-01 06:00:00,123 | INFO | …`. */
const IN_CAPITALS = new RegExp(`^[\\d\\s:.,/TZ+|[\\]()-]{0,60}\\b(${NAMES.toUpperCase()})\\b`);

/** @param line must not contain a line break */
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

/** Returns a level from its name, or from its number in pino (10 to 60). */
function levelNamed(level: unknown): LogLevel | undefined {
  if (typeof level === 'string') {
    const name = level.toLowerCase();
    // The name may be any text, such as `constructor`, so only own properties of `LEVELS` count.
    return Object.hasOwn(LEVELS, name) ? LEVELS[name] : undefined;
  }
  if (typeof level !== 'number') return undefined;
  return LOG_LEVELS[Math.min(Math.max(Math.floor(level / 10) - 2, 0), 3)];
}
