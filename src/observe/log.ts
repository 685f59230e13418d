/** The log: one wide line per unit of work, written at its end with all it learned. */
import { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { pino } from 'pino';
import { redactFields } from './redact.ts';

/** What the parts of the service log with. Message names are `noun.verb`, fields match the API's names. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Characters of lines that could not be written yet; what comes beyond them is dropped. */
const MAX_WAITING = 1 << 20;

/**
 * Makes a logger that writes to standard error: JSON lines, or readable ones when `pretty`. Standard output
 * stays free for what a person or a script asked for. What is secret or personal is left out of every line: see
 * `redact.ts`.
 */
export function createLogger(options: { level: LogLevel; pretty: boolean }): Logger {
  const settings: pino.LoggerOptions = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: redactFields, bindings: redactFields },
  };
  if (options.pretty) return pino(settings, prettyStream());
  const destination = pino.destination({ fd: 2, sync: true, maxLength: MAX_WAITING });
  // A full disk costs lines, not the service.
  destination.on('error', () => undefined);
  return pino(settings, destination);
}

/** Writes nothing. */
export const silentLogger: Logger = pino({ level: 'silent' });

const COLOURS = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' } as const;

/** Turns JSON lines into `time level message field=value …` for people. */
function prettyStream(): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split('\n')) {
        if (line !== '') process.stderr.write(`${prettyLine(line)}\n`);
      }
      done();
    },
  });
}

function prettyLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const colour = COLOURS[String(level) as keyof typeof COLOURS] ?? 'white';
  const stream = process.stderr;
  const rest = Object.entries(fields)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  const stack = (err as { stack?: string; message?: string } | undefined)?.stack;
  return [
    styleText('gray', String(time).slice(11, 23), { stream }),
    styleText(colour, String(level).padEnd(5), { stream }),
    String(msg),
    styleText('gray', rest, { stream }),
    ...(stack === undefined ? [] : [`\n  ${stack.split('\n').join('\n  ')}`]),
  ].join(' ');
}
