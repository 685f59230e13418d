/** A source that did not give what it should. */

/** The sentence says which request it was, what came back and, where there is one, the next step. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  /** The status of the answer, if there was one. */
  readonly status: number | undefined;

  constructor(sentence: string, options: { status?: number; cause?: unknown } = {}) {
    super(sentence, { cause: options.cause });
    this.status = options.status;
  }
}
