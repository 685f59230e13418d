/** Compresses the bytes of a response: not at all, by gzip, or by zstd. */
import { Readable, type Transform } from 'node:stream';
import { promisify } from 'node:util';
import { constants, createGzip, createZstdCompress, gzip, zstdCompress } from 'node:zlib';

export const ENCODINGS = ['identity', 'gzip', 'zstd'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Output chunks of a compressor: larger, and so fewer, than the default of 16 KiB. */
const CHUNK_BYTES = 64 * 1_024;
/** Level 1 is three times as fast as level 6, for output that is a tenth larger. */
const GZIP_LEVEL = 1;

const ZSTD_PARAMS = { [constants.ZSTD_c_compressionLevel]: 1 };
/** For what is compressed once and sent often. */
const BEST_GZIP_LEVEL = 9;
const BEST_ZSTD_PARAMS = { [constants.ZSTD_c_compressionLevel]: 19 };

/** The bytes compressed, on a thread of the pool. */
export function compress(
  bytes: Uint8Array,
  encoding: Exclude<Encoding, 'identity'>,
  { isKept = false }: { isKept?: boolean } = {},
): Promise<Uint8Array> {
  if (encoding === 'gzip') {
    return promisify(gzip)(bytes, { level: isKept ? BEST_GZIP_LEVEL : GZIP_LEVEL });
  }
  return promisify(zstdCompress)(bytes, { params: isKept ? BEST_ZSTD_PARAMS : ZSTD_PARAMS });
}

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
      : createZstdCompress({ chunkSize: CHUNK_BYTES, params: ZSTD_PARAMS });
  const plain = Readable.from(source, { objectMode: false });
  plain.on('error', (error) => compressor.destroy(error));
  try {
    yield* plain.pipe(compressor) as AsyncIterable<Uint8Array>;
  } finally {
    plain.destroy();
    compressor.destroy();
  }
}
