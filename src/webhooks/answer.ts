/** The start of an endpoint's answer, whatever its sender makes of it. */

/** Of an answer no more than this is read; its sender must not decide how long an attempt takes. */
const MAX_READ_BYTES = 64 * 1024;
const KEPT_BYTES = 2 * 1024;

export class Answer {
  readonly #kept: Buffer[] = [];
  #bytes = 0;

  /** Answers whether any more is to be read. */
  add(chunk: Buffer): boolean {
    // Copied: a part of a chunk would keep all of it in memory.
    if (this.#bytes < KEPT_BYTES) this.#kept.push(Buffer.from(chunk.subarray(0, KEPT_BYTES - this.#bytes)));
    this.#bytes += chunk.length;
    return this.#bytes < MAX_READ_BYTES;
  }

  /** The first 2 KiB as text; of a packed answer only how large it is and how it is packed. */
  text(encoding: string | string[] | undefined): string {
    const bytes = this.#bytes;
    // Nothing is ever unpacked here, so that a small answer cannot become a huge one.
    if (encoding !== undefined && encoding !== 'identity') {
      const size = bytes >= MAX_READ_BYTES ? `${MAX_READ_BYTES} bytes or more` : `${bytes} bytes`;
      return `(${size}, ${[encoding].flat().join(', ').slice(0, 100)})`;
    }
    if (bytes === 0) return '';
    const text = new TextDecoder().decode(Buffer.concat(this.#kept), { stream: true });
    // PostgreSQL takes no NUL in text.
    return text.replaceAll('\0', '\ufffd');
  }
}
