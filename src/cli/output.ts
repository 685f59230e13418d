/** Standard output, for more than fits into memory. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Writes to standard output as fast as it is read there; a reader that has enough (`head`) is no mistake. */
export async function toOutput(bytes: AsyncIterable<Uint8Array>, last = ''): Promise<void> {
  try {
    await pipeline(Readable.from(bytes, { objectMode: false }), process.stdout, { end: false });
    if (last !== '') process.stdout.write(last);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}
