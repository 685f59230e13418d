/**
 * Sends requests over keep-alive connections, and measures their rate and durations. It uses bare sockets and reads only the
 * status and length of a response, because it shares the processors with the server, and undici needs as much time for a
 * request as Fastify for the response.
 */
import { connect, type Socket } from 'node:net';

export interface LoadRequest {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
}

/** Sends requests as fast as possible over a fixed number of connections. */
export async function hammer(input: {
  url: string;
  connections: number;
  forMs: number;
  request: (index: number) => LoadRequest;
  /** Called with each status. If it returns false, the request does not count. */
  onStatus?: (status: number) => unknown;
}): Promise<{ perSecond: number; p50Ms: number; p99Ms: number }> {
  const { hostname, port, host } = new URL(input.url);
  const took: number[] = [];
  const sockets = await Promise.all(
    Array.from({ length: input.connections }, () => connected(hostname, Number(port))),
  );
  const from = performance.now();
  let index = 0;
  await Promise.all(
    sockets.map(async (socket) => {
      const nextStatus = statuses(socket);
      while (performance.now() - from < input.forMs) {
        const sent = performance.now();
        socket.write(asText(input.request(index++), host));
        const status = await nextStatus();
        const ms = performance.now() - sent;
        if (input.onStatus?.(status) !== false) took.push(ms);
      }
    }),
  );
  const seconds = (performance.now() - from) / 1_000;
  for (const socket of sockets) socket.destroy();
  took.sort((a, b) => a - b);
  const at = (share: number) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0;
  return { perSecond: took.length / seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
}

function connected(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => resolve(socket));
    socket.once('error', reject);
  });
}

function asText({ method, path, headers = {} }: LoadRequest, host: string): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = method === 'POST' ? 'content-length: 0\r\n' : '';
  return `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n${lines.join('')}${length}\r\n`;
}

/** Returns a function that waits for the next response and returns its status. Responses need a `content-length`, or no body. */
function statuses(socket: Socket): () => Promise<number> {
  let got = '';
  let waiting: { resolve: (status: number) => void; reject: (error: Error) => void } | undefined;
  const broken = (error?: Error) => waiting?.reject(error ?? new Error('The connection was closed'));
  socket.setEncoding('latin1');
  socket.on('error', broken);
  socket.on('close', () => broken());
  socket.on('data', (chunk: string) => {
    got += chunk;
    const end = got.indexOf('\r\n\r\n');
    if (end === -1) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(got.slice(0, end))?.[1] ?? 0);
    if (got.length < end + 4 + length) return;
    const status = Number(got.slice(9, 12));
    got = '';
    waiting?.resolve(status);
  });
  return () =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject };
    });
}
