/** Reads a response body line by line, with backpressure. */
import { TimedOut, Unavailable } from './errors.ts';
import { timedOut } from './transport.ts';

/**
 * The lines of a body. Leaving the loop early cancels the response.
 *
 * @param patienceMs time limit in milliseconds for each wait for more data; 0 means no limit
 * @throws Unavailable `broken_off` if the body ends within a line or the connection breaks; TimedOut
 */
export async function* linesOf(
  response: Response,
  { patienceMs, signal }: { patienceMs: number; signal?: AbortSignal | undefined },
): AsyncGenerator<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), patienceMs).catch((cause) => {
        signal?.throwIfAborted();
        throw brokenOff(cause);
      });
      if (done) break;
      const parts = decoder.decode(value, { stream: true }).split('\n');
      parts[0] = rest + parts[0];
      rest = parts.pop() ?? '';
      yield* parts;
    }
    if (rest !== '') throw brokenOff();
  } finally {
    // This is not awaited, because the connection is abandoned or has already ended.
    reader.cancel().catch(() => {});
  }
}

/** The error for an incomplete response. */
export function brokenOff(cause?: unknown): unknown {
  if (cause instanceof TimedOut) return cause;
  return new Unavailable({
    message: 'The response ended early. Read it again',
    status: 0,
    code: 'broken_off',
    cause,
  });
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  if (ms <= 0) return promise;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timedOut(ms)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
