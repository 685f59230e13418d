/** Reads a body of which only the beginning is wanted, whoever sends it. */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../model/error.ts';

/** What is read and thrown away behind the beginning, so that most senders still get their answer. */
const MAX_DISCARDED_BYTES = 1_048_576;

/**
 * @param most bytes that are kept
 * @returns `size`: of all that was read; `isWhole`: whether that was everything, else the connection has to be closed
 * @throws Problem `request_malformed` when the client went away
 */
export async function readBeginning(
  request: IncomingMessage,
  most: number,
): Promise<{ bytes: Buffer; size: number; truncated: boolean; isWhole: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  let isWhole = true;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      const room = Math.max(0, most - size);
      // A part of a chunk would keep the whole of it in memory.
      if (room > 0) chunks.push(Buffer.from((chunk as Buffer).subarray(0, room)));
      size += (chunk as Buffer).length;
      if (size <= most + MAX_DISCARDED_BYTES) continue;
      isWhole = false;
      break;
    }
  } catch (cause) {
    throw new Problem('request_malformed', { sentence: 'The request body ended too early', cause });
  }
  return { bytes: Buffer.concat(chunks), size, truncated: size > most, isWhole };
}
