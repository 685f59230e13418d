/**
 * Readers in a process of their own, so that what they cost is not taken for the server's: `fork` it, send it
 * `{ url, headers, pauseMs }`, and it answers `{ bytes, firstMs, seconds, sha256 }`. With `pauseMs` it stops reading
 * after its first bytes for so long.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';

export interface ReadRequest {
  url: string;
  headers: Record<string, string>;
  pauseMs?: number;
}

export interface ReadResult {
  bytes: number;
  /** From sending the request to the first byte of the body. */
  firstMs: number;
  seconds: number;
  version: string;
  sha256: string;
}

/** Starts a process that reads; one read at a time. */
export function startReader(): { read(input: ReadRequest): Promise<ReadResult>; stop(): Promise<void> } {
  const child = fork(fileURLToPath(import.meta.url));
  return {
    async read(input) {
      const done = new AbortController();
      const { signal } = done;
      const answer = Promise.race([once(child, 'message', { signal }), once(child, 'exit', { signal })]);
      child.send(input);
      const [result] = (await answer) as [ReadResult | { error: string } | number];
      done.abort();
      if (typeof result === 'number' || 'error' in result)
        throw new Error(`The reader failed: ${JSON.stringify(result)}`);
      return result;
    },
    async stop() {
      if (child.exitCode !== null) return;
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}

if (import.meta.main) {
  process.on('message', (input: ReadRequest) => {
    read(input).then(
      (result) => process.send?.(result),
      (error: Error) => process.send?.({ error: error.message }),
    );
  });
}

async function read({ url, headers, pauseMs }: ReadRequest): Promise<ReadResult> {
  const from = performance.now();
  const answer = await request(url, { headers, bodyTimeout: 0 });
  const hash = createHash('sha256');
  let firstMs = 0;
  let bytes = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    if (bytes === 0) {
      firstMs = performance.now() - from;
      if (pauseMs !== undefined) await pause(pauseMs);
    }
    bytes += chunk.length;
    if (pauseMs !== undefined) hash.update(chunk);
  }
  if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.statusCode}`);
  return {
    bytes,
    firstMs,
    seconds: (performance.now() - from) / 1_000,
    version: String(answer.headers['x-data-version']),
    sha256: hash.digest('hex'),
  };
}
