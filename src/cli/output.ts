/** Standard output: what a command was asked for. Messages go to standard error: `say.ts`. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { printable } from '../std/printable.ts';
import type { Options } from './settings.ts';

/**
 * Prints the value with `--json`, otherwise the lines. Lines may contain text from outside (names of events, answers of
 * receivers), so control characters, which a terminal would obey, are removed.
 */
export function print(options: Options, value: unknown, lines: readonly string[]): void {
  const text = options.json === true ? [JSON.stringify(value)] : lines.map(printable);
  process.stdout.write(text.map((line) => `${line}\n`).join(''));
}

/** Writes more than fits into memory, as fast as it is read. A reader that stops early (`head`) is no error. */
export async function toOutput(bytes: AsyncIterable<Uint8Array>, last = ''): Promise<void> {
  try {
    await pipeline(Readable.from(bytes, { objectMode: false }), process.stdout, { end: false });
    if (last !== '') process.stdout.write(last);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}
