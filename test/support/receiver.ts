/** A webhook endpoint that records what arrives. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd } from './at-end.ts';

/** One request, as it arrived. */
export interface Received {
  headers: IncomingHttpHeaders;
  /** The exact text that was signed. */
  text: string;
  /** The text, parsed. */
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
  /** Resolves when the received requests satisfy the condition. Rejects after `withinMs`; `what` names what is missing. */
  until(
    condition: (received: readonly Received[]) => boolean,
    what: string,
    withinMs?: number,
  ): Promise<void>;
  stop(): Promise<void>;
}

/** @param options.status the status of the response; default: 204. `delayMs` delays the response */
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
      const respond = () => response.writeHead(options.status?.(one) ?? 204).end();
      if (options.delayMs === undefined) respond();
      else setTimeout(respond, options.delayMs());
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
          reject(
            new Error(`Timed out after ${withinMs} ms waiting for ${what}. Received: ${types || 'nothing'}`),
          );
        }, withinMs);
        waiting.add(check);
        check();
      });
    },
    stop,
  };
}
