/** Reading a body from its first byte to its last, into memory that the reader uses again and again. */
import type { FileHandle } from 'node:fs/promises';

/**
 * Chunks of its own for each read would be 500 MB a second of memory for the garbage collector to look after:
 * measured, that took a tenth of the event loop's time, in pauses of up to 12 ms.
 */
export interface BodyReader {
  /**
   * Fills the beginning of `into` and answers how many bytes those are; 0 at the end. One call at a time.
   *
   * @throws VersionGoneError when the version is no longer whole; another Error when reading fails
   */
  read(into: Uint8Array): Promise<number>;
  /** Aborted, with an Error as its reason, when the rest must not be sent. */
  readonly broken: AbortSignal;
  /** To be called when nobody reads any more. Twice is harmless. */
  close(): void;
}

/** What stands in a file from `start` up to, not including, `end`. Closes the file at its own close. */
export function readFilePart(input: {
  file: FileHandle;
  start: number;
  end: number;
  broken: AbortSignal;
  onClose: () => void;
}): BodyReader {
  const { file, end, broken, onClose } = input;
  let position = input.start;
  let closed = false;
  return {
    broken,
    async read(into) {
      broken.throwIfAborted();
      const length = Math.min(into.length, end - position);
      if (closed || length <= 0) return 0;
      const { bytesRead } = await file.read(into, 0, length, position);
      if (bytesRead === 0) throw new Error('The file of a representation ended early');
      position += bytesRead;
      return bytesRead;
    },
    close() {
      if (closed) return;
      closed = true;
      onClose();
      // Waits for a read that is under way.
      file.close().catch(() => {});
    },
  };
}
