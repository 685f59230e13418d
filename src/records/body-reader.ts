/** How a body is read: sequentially, into a buffer that the caller reuses. */
import type { FileHandle } from 'node:fs/promises';

/**
 * The caller brings the buffer because a new chunk for each read would be 500 MB of garbage a second: measured, its
 * collection took a tenth of the event loop's time, in pauses of up to 12 ms.
 */
export interface BodyReader {
  /**
   * Fills the beginning of `into` and returns the number of bytes read; 0 at the end. One call at a time.
   *
   * @throws VersionGoneError when the version is no longer whole; another Error when reading fails
   */
  read(into: Uint8Array): Promise<number>;
  /** Aborted, with an Error as its reason, when the rest must not be sent. */
  readonly broken: AbortSignal;
  /** Must be called when reading is over. Calling it twice is harmless. */
  close(): void;
}

/** Reads the bytes of a file from `start` up to, not including, `end`. Closing the reader closes the file. */
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
      // Node closes it when a read under way has ended.
      file.close().catch(() => {});
    },
  };
}
