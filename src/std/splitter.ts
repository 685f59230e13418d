/** What cuts a stream of bytes into pieces of text, chunk by chunk. */

/** Fed with the chunks of one stream, in order, and told at its end. */
export interface Splitter {
  /** The pieces that this chunk completes. Throws a MalformedError. */
  push(chunk: Uint8Array): string[];
  /** The pieces that the end of the stream completes. Throws a MalformedError when the stream cannot end here. */
  end(): string[];
}

/** Raised when the bytes do not have the form that they should have; the message says where and what. */
export class MalformedError extends Error {
  override readonly name = 'MalformedError';
}
