/** The logger: JSON lines, or readable lines for a terminal. `wide-lines.ts` writes one line per unit of work. */
import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { styleText } from 'node:util';
import type * as Pino from 'pino';
import { redactFields } from './redact.ts';

/** A logger with one method per level. Messages are named `noun.verb`. Fields have the same names as in the API. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Maximum number of characters that are buffered while standard error is blocked. Further lines are dropped. */
const MAX_WAITING = 1 << 20;

const require = createRequire(import.meta.url);

/**
 * Makes a logger that writes to standard error, because standard output is reserved for the results of commands.
 * `redact.ts` removes secrets and personal data from every line. pino is loaded with the first line, because most commands
 * log nothing.
 */
export function createLogger(options: { level: LogLevel; pretty: boolean }): Logger {
  return opened(() => open(options));
}

/** Returns a logger that is made when it is first used. */
function opened(make: () => Logger): Logger {
  let made: Logger | undefined;
  const logger = () => (made ??= make());
  return {
    debug: (fields, message) => logger().debug(fields, message),
    info: (fields, message) => logger().info(fields, message),
    warn: (fields, message) => logger().warn(fields, message),
    error: (fields, message) => logger().error(fields, message),
    child: (fields) => opened(() => logger().child(fields)),
  };
}

function open(options: { level: LogLevel; pretty: boolean }): Logger {
  const { pino } = require('pino') as typeof Pino;
  const settings: Pino.LoggerOptions = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: redactFields, bindings: redactFields },
  };
  if (options.pretty) return pino(settings, prettyStream());
  const destination = pino.destination({ fd: 2, sync: true, maxLength: MAX_WAITING });
  // If the disk is full, lines are lost and the service continues.
  destination.on('error', () => undefined);
  return pino(settings, destination);
}

/** Writes nothing. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

const COLORS = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' } as const;

/** Converts JSON lines to `time level message field=value …`. */
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
  const color = COLORS[String(level) as keyof typeof COLORS] ?? 'white';
  const stream = process.stderr;
  const rest = Object.entries(fields)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  const stack = (err as { stack?: string; message?: string } | undefined)?.stack;
  return [
    styleText('gray', String(time).slice(11, 23), { stream }),
    styleText(color, String(level).padEnd(5), { stream }),
    String(msg),
    styleText('gray', rest, { stream }),
    ...(stack === undefined ? [] : [`\n  ${stack.split('\n').join('\n  ')}`]),
  ].join(' ');
}
