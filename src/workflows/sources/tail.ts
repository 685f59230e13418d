/** Follows a child's standard error: every line goes to the log, the last ones are kept for the error sentence. */
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import type { Logger } from '../../observe/log.ts';

const KEPT_LINES = 20;
const KEPT_CHARACTERS = 8_192;
/** A child that writes more than this much log at a time waits: it must not keep the server busy. */
const BURST_BYTES = 1 << 20;
const BURST_MS = 250;
/** Shorter secrets are not masked: they would mask ordinary words. */
const MASKED_LENGTH = 5;

export interface Tail {
  /** The last 20 lines, at most 8 KiB. */
  text(): string;
}

/** Reads a stream to its end. The values of secrets are replaced by `***`: errors are stored and sent on. */
export function followTail(
  stream: Readable,
  options: { secrets: ReadonlyMap<string, string>; log: Logger },
): Tail {
  const decoder = new StringDecoder();
  // A secret of several lines, such as a private key, is masked line by line, as it would be printed.
  const hidden = [...options.secrets.values()]
    .flatMap((value) => value.split(/\r?\n/))
    .filter((line) => line.length >= MASKED_LENGTH)
    .sort((a, b) => b.length - a.length);
  const kept: string[] = [];
  let partial = '';
  let burst = 0;

  function keep(line: string): void {
    let text = stripVTControlCharacters(line);
    for (const secret of hidden) text = text.replaceAll(secret, '***');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go.
    text = text.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '').trimEnd();
    if (text === '') return;
    options.log.debug({ line: text }, 'run.log');
    kept.push(text.slice(0, KEPT_CHARACTERS));
    if (kept.length > KEPT_LINES) kept.shift();
  }

  stream.on('data', (chunk: Buffer) => {
    // Progress bars end their lines with a carriage return alone.
    const lines = (partial + decoder.write(chunk)).split(/\r\n|[\r\n]/);
    partial = lines.pop() ?? '';
    for (const line of lines) keep(line);
    if (partial.length > KEPT_CHARACTERS) {
      keep(partial);
      partial = '';
    }
    burst += chunk.length;
    if (burst > BURST_BYTES && !stream.isPaused()) {
      stream.pause();
      setTimeout(() => {
        burst = 0;
        stream.resume();
      }, BURST_MS);
    }
  });
  // A broken pipe ends the log, never the server.
  stream.on('error', () => {});
  stream.on('end', () => keep(partial + decoder.end()));

  return {
    text: () => {
      let text = '';
      for (const line of kept.toReversed()) {
        if (text.length + line.length > KEPT_CHARACTERS) break;
        text = text === '' ? line : `${line}\n${text}`;
      }
      return text;
    },
  };
}
