/** Compresses the bytes of a response: not at all, by gzip, or by zstd. */
import { Readable, type Transform } from 'node:stream';
import { constants, createGzip, createZstdCompress } from 'node:zlib';

export const ENCODINGS = ['identity', 'gzip', 'zstd'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Output chunks of a compressor: larger, and so fewer, than the default of 16 KiB. */
const CHUNK_BYTES = 64 * 1_024;
/** Level 1 is three times as fast as level 6, for output that is a tenth larger. */
const GZIP_LEVEL = 1;

/** The source compressed. Ending the iteration early ends the source; an error of the source is rethrown. */
export async function* encoded(
  source: AsyncIterable<Uint8Array>,
  encoding: Encoding,
): AsyncGenerator<Uint8Array> {
  if (encoding === 'identity') {
    yield* source;
    return;
  }
  const compressor: Transform =
    encoding === 'gzip'
      ? createGzip({ level: GZIP_LEVEL, chunkSize: CHUNK_BYTES })
      : createZstdCompress({ chunkSize: CHUNK_BYTES, params: { [constants.ZSTD_c_compressionLevel]: 1 } });
  const plain = Readable.from(source, { objectMode: false });
  plain.on('error', (error) => compressor.destroy(error));
  try {
    yield* plain.pipe(compressor) as AsyncIterable<Uint8Array>;
  } finally {
    plain.destroy();
    compressor.destroy();
  }
}
