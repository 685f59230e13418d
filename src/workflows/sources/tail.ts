/** Follows a child's standard error: every line goes to the log, the last ones are kept for the error sentence. */
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import type { LogLevel } from '../../model/job.ts';
import { FOR_FLOWHOOK, readLogLine } from './log-line.ts';
import { createMask } from './mask.ts';

const KEPT_LINES = 20;
/** A longer line becomes several. */
const MAX_LINE_CHARACTERS = 8_192;
/** A line for Flowhook is JSON and must come whole. */
const MAX_FLOWHOOK_CHARACTERS = 65_536;
/** A child that writes more than this much log at a time waits: it must not keep the server busy. */
const BURST_BYTES = 1 << 20;
const BURST_MS = 250;
/** What a line costs beside its bytes: a flood of empty-handed lines is the dearest. */
const LINE_BYTES = 200;
/** Everybody else has a turn after so many. */
const LINES_A_TURN = 500;

export interface Tail {
  /** The last 20 lines, at most 8 KiB. */
  text(): string;
  /** Says that the child is gone: what is left is little, and waited for. */
  hurry(): void;
  /** Resolves when the stream is closed and all that came of it has been told. */
  over: Promise<void>;
}

/** Who is told what a child says on standard error. */
export interface Listener {
  onLog(line: { level: LogLevel; text: string }): void;
  onProgress(said: { pages?: number; message?: string }): void;
}

/** Reads a stream to its end. The values of secrets are replaced by `***`: logs and errors are stored and sent on. */
export function followTail(
  stream: Readable,
  options: { secrets: ReadonlyMap<string, string> } & Listener,
): Tail {
  const decoder = new StringDecoder();
  const mask = createMask(options.secrets);
  const kept: string[] = [];
  let partial = '';
  let burst = 0;
  let waiting: string[] = [];
  /** How many of them have been read. */
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

  /** A line without end is cut, but never through a secret: what could be the beginning of one stays for later. */
  function cut(): void {
    const most = partial.startsWith(FOR_FLOWHOOK) ? MAX_FLOWHOOK_CHARACTERS : MAX_LINE_CHARACTERS;
    if (partial.length <= most) return;
    const masked = mask.apply(partial);
    const end = Math.max(masked.length - mask.longest + 1, 0);
    read(masked.slice(0, end));
    partial = masked.slice(end);
  }

  /** Reads the waiting lines a few at a time, and lets the next ones come when these are done. */
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
    else if (burst > BURST_BYTES && !isHurried) throttle = setTimeout(goOn, BURST_MS);
    else stream.resume();
  }

  function goOn(): void {
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
    // Progress bars end their lines with a carriage return alone.
    const lines = (partial + decoder.write(chunk)).split(/\r\n|[\r\n]/);
    partial = lines.pop() ?? '';
    burst += chunk.length + lines.length * LINE_BYTES;
    // Node itself resumes the stream of a process that has ended, so there may be lines waiting already.
    waiting = waiting.concat(lines);
    if (!isWorking) work();
  });
  // A broken pipe ends the log, never the server.
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
    text: () => {
      let text = '';
      for (const line of kept.toReversed()) {
        if (text.length + line.length > MAX_LINE_CHARACTERS) break;
        text = text === '' ? line : `${line}\n${text}`;
      }
      return text;
    },
  };
}
