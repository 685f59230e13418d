/** Decides whether a response that a broken connection cut short is requested again. */
import { SourceError } from './source-error.ts';

const MAX_READS = 4;
const REREAD_MS = 1_000;

export interface RereadDeps {
  signal: AbortSignal;
  log(level: 'debug' | 'info' | 'warn', text: string): void;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * Waits until the response may be requested again.
 *
 * @param read.reads how often it was read, from 1
 * @param read.handedOut records of it that were already handed out, and cannot be taken back
 * @throws the given error, unless it is a broken connection; SourceError when it is not requested again
 */
export async function waitToReread(
  error: unknown,
  read: { url: string; reads: number; handedOut: number },
  { signal, log, wait }: RereadDeps,
): Promise<void> {
  signal.throwIfAborted();
  if (!isBroken(error)) throw error;
  const { code } = error as { code?: string };
  const message = code === 'UND_ERR_BODY_TIMEOUT' ? 'not a byte came for a minute' : (error as Error).message;
  const what = `The connection to ${read.url} broke off in the middle of its answer`;
  if (read.reads >= MAX_READS || read.handedOut > 0) {
    const after = read.handedOut > 0 ? ` after ${read.handedOut} records` : '';
    throw new SourceError(`${what}${after}: ${message}`, { cause: error });
  }
  log('warn', `${what} (${message}): asked again`);
  await wait(REREAD_MS * read.reads, signal);
}

function isBroken(error: unknown): boolean {
  const { code = '' } = error as { code?: string };
  return /^(?:UND_ERR_|ECONN|EPIPE|ETIMEDOUT)/.test(code) || (error as Error).message === 'terminated';
}
