/** Reads the start of an endpoint's answer, whatever its sender makes of it. */

/** Of an answer no more than this is read; its sender must not decide how long an attempt takes. */
const MAX_READ_BYTES = 64 * 1024;
const KEPT_BYTES = 2 * 1024;

/**
 * The first 2 KiB of the answer as text; of a packed one only how large it is and how it is packed. Leaving the loop
 * early destroys the connection.
 */
export async function readStart(
  body: AsyncIterable<Buffer>,
  encoding: string | string[] | undefined,
): Promise<string> {
  const kept: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    if (bytes < KEPT_BYTES) kept.push(chunk.subarray(0, KEPT_BYTES - bytes));
    bytes += chunk.length;
    if (bytes >= MAX_READ_BYTES) break;
  }
  // Nothing is ever unpacked here, so that a small answer cannot become a huge one.
  if (encoding !== undefined && encoding !== 'identity') {
    const size = bytes >= MAX_READ_BYTES ? `${MAX_READ_BYTES} bytes or more` : `${bytes} bytes`;
    return `(${size}, ${[encoding].flat().join(', ').slice(0, 100)})`;
  }
  const text = new TextDecoder().decode(Buffer.concat(kept), { stream: true });
  // PostgreSQL takes no NUL in text.
  return text.replaceAll('\0', '\ufffd');
}
