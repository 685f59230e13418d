/** Decompresses bytes while they arrive. */
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * Yields the decompressed bytes, and destroys the decoder at the end.
 *
 * @param decoder a stream that decompresses, such as a gunzip stream
 * @param malformed creates the error to throw for invalid or incomplete data
 * @throws errors of `bytes` unchanged
 */
export async function* decompressed(
  bytes: AsyncIterable<Uint8Array>,
  decoder: Transform,
  malformed: (cause: Error) => Error,
): AsyncGenerator<Uint8Array> {
  let fault: { error: unknown } | undefined;
  async function* input(): AsyncGenerator<Uint8Array> {
    try {
      yield* bytes;
    } catch (error) {
      fault = { error };
      throw error;
    }
  }
  // An error destroys the decoder. Iterating over the decoder below then throws the error, so it is ignored here.
  const flowing = pipeline(Readable.from(input()), decoder).catch(() => {});
  try {
    yield* decoder;
  } catch (error) {
    throw fault === undefined ? malformed(error as Error) : fault.error;
  } finally {
    decoder.destroy();
    await flowing;
  }
}
