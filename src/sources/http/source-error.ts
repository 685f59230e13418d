/** The errors of a source that fails its run with the reason `source`. */

/** A request failed or may not be sent. The message says which request, what came back and, if there is one, the next step. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  /** The status of the response, if there was one. */
  readonly status: number | undefined;

  constructor(sentence: string, options: { status?: number; cause?: unknown } = {}) {
    super(sentence, { cause: options.cause });
    this.status = options.status;
  }
}

/** A response cannot be read in its format. The message says what came instead. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}
