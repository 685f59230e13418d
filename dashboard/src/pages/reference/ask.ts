/** Makes one call without the client, to show the response as it is. */

export interface Answer {
  status: number;
  statusText: string;
  tookMs: number;
  /** Those that say something about the answer itself. */
  headers: [name: string, value: string][];
  /** Its first `MAX_BYTES`. */
  text: string;
  /** Bytes that were read. */
  size: number;
  isWhole: boolean;
}

/** More than anybody reads, and little enough to render at once. */
const MAX_BYTES = 64 * 1_024;
const TIMEOUT_MS = 60_000;
const SHOWN = /^(content-type|link|location|etag|retry-after|x-(?!content-type-options|frame)[\w-]+)$/;

/** @param input.withSession else the call is anybody's */
export async function ask({
  path,
  headers,
  withSession,
}: {
  path: string;
  headers: Record<string, string>;
  withSession: boolean;
}): Promise<Answer> {
  const fromMs = performance.now();
  const response = await fetch(withSession ? `/ui/api${path}` : path, {
    headers,
    cache: 'no-store',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const { text, size, isWhole } = await beginningOf(response);
  return {
    status: response.status,
    statusText: response.statusText,
    tookMs: performance.now() - fromMs,
    headers: [...response.headers].filter(([name]) => SHOWN.test(name)),
    text,
    size,
    isWhole,
  };
}

async function beginningOf({ body }: Response): Promise<Pick<Answer, 'text' | 'size' | 'isWhole'>> {
  const decoder = new TextDecoder();
  let text = '';
  let size = 0;
  if (body === null) return { text, size, isWhole: true };
  const reader = body.getReader();
  while (size < MAX_BYTES) {
    const { value, done } = await reader.read();
    if (done) return { text, size, isWhole: true };
    const part = value.subarray(0, MAX_BYTES - size);
    text += decoder.decode(part, { stream: true });
    size += part.length;
  }
  // The rest is not waited for.
  await reader.cancel();
  return { text, size, isWhole: false };
}
