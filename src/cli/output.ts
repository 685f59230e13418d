/** Standard output: what a command was asked for. Messages go to standard error: `say.ts`. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { printable } from '../std/printable.ts';
import type { Options } from './settings.ts';

/**
 * Prints the value with `--json`, otherwise the lines. Lines may contain text from outside (names of events, answers of
 * receivers), so control characters, which a terminal would obey, are removed; of JSON only on a terminal.
 */
export function print(options: Options, value: unknown, lines: readonly string[]): void {
  const text = options.json === true ? [forTerminal(JSON.stringify(value))] : lines.map(printable);
  process.stdout.write(text.map((line) => `${line}\n`).join(''));
}

/**
 * Writes more than fits into memory, as fast as it is read; a pipe or a file gets the bytes as they are. A reader that
 * stops early (`head`) is no error.
 */
export async function toOutput(bytes: AsyncIterable<Uint8Array>, last = ''): Promise<void> {
  const written = process.stdout.isTTY === true ? printableBytes(bytes) : bytes;
  try {
    await pipeline(Readable.from(written, { objectMode: false }), process.stdout, { end: false });
    if (last !== '') process.stdout.write(last);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}

function forTerminal(text: string): string {
  return process.stdout.isTTY === true ? printable(text) : text;
}

async function* printableBytes(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  // A character may begin in one chunk and end in the next.
  const decoder = new TextDecoder();
  for await (const chunk of bytes) {
    const text = printable(decoder.decode(chunk, { stream: true }));
    if (text !== '') yield text;
  }
}
