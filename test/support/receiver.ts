/** A webhook endpoint that records what arrives. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd } from './at-end.ts';

/** One request, as it arrived. */
export interface Received {
  headers: IncomingHttpHeaders;
  /** The exact text that was signed. */
  text: string;
  /** The same, parsed. */
  event: {
    id: string;
    type: string;
    jobId?: string;
    workflowId?: string;
    sequence: number;
    data: Record<string, unknown>;
  };
}

export interface Receiver {
  url: string;
  received: Received[];
  /** Resolves when what has arrived satisfies the condition; rejects after `withinMs` with what is missing. */
  until(
    condition: (received: readonly Received[]) => boolean,
    what: string,
    withinMs?: number,
  ): Promise<void>;
  stop(): Promise<void>;
}

/** @param options.status what to answer; 204 unless told. `delayMs` keeps the answer back */
export async function startReceiver(
  options: { status?: (received: Received) => number; delayMs?: () => number } = {},
): Promise<Receiver> {
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const one = { headers: request.headers, text, event: JSON.parse(text) };
      received.push(one);
      const answer = () => response.writeHead(options.status?.(one) ?? 204).end();
      if (options.delayMs === undefined) answer();
      else setTimeout(answer, options.delayMs());
      for (const check of waiting) check();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  atEnd(stop);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    until(condition, what, withinMs = 90_000) {
      return new Promise((resolve, reject) => {
        const check = () => {
          if (!condition(received)) return;
          clearTimeout(deadline);
          waiting.delete(check);
          resolve();
        };
        const deadline = setTimeout(() => {
          waiting.delete(check);
          const types = received.map((one) => one.event.type).join(', ');
          reject(new Error(`After ${withinMs} ms still waiting for ${what}; arrived: ${types || 'nothing'}`));
        }, withinMs);
        waiting.add(check);
        check();
      });
    },
    stop,
  };
}
