/** A webhook endpoint in a process of its own: it counts, takes the time, and misbehaves on request. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What paths that begin with `/bad` meet; all others are answered 204 at once. */
export type Misbehaviour = 'none' | 'hang' | 'drip' | 'reset' | 'answer 500';

export interface Taken {
  /** Requests to other paths than `/bad`. */
  received: number;
  /** From the timestamp in each of their bodies to its arrival, in milliseconds, ascending. */
  latenciesMs: number[];
  /** When the first and the last of them came: milliseconds, by the clock of the machine. */
  firstAt: number;
  lastAt: number;
}

export interface Sink {
  url: string;
  misbehave(how: Misbehaviour): void;
  /** How many have come since the last `take`. */
  count(): Promise<number>;
  /** What has come since the last call. */
  take(): Promise<Taken>;
  stop(): void;
}

const DRIP_EVERY_MS = 1_000;

export async function startSink(): Promise<Sink> {
  const child = fork(import.meta.filename, ['run']);
  const [url] = (await once(child, 'message')) as [string];
  return {
    url,
    misbehave: (how) => child.send({ how }),
    count: () => ask<number>(child, 'count'),
    take: () => ask<Taken>(child, 'take'),
    stop: () => child.kill(),
  };
}

async function ask<T>(child: ChildProcess, what: string): Promise<T> {
  const answered = once(child, 'message');
  child.send({ what });
  return (await answered)[0] as T;
}

if (process.argv[2] === 'run') run();

function run(): void {
  let how: Misbehaviour = 'none';
  let latenciesMs: number[] = [];
  let firstAt = 0;
  let lastAt = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    request.on('end', () => {
      if (request.url?.startsWith('/bad') && how !== 'none') return misbehave(how, response);
      response.writeHead(204).end();
      if (request.url?.startsWith('/bad')) return;
      lastAt = Date.now();
      if (latenciesMs.length === 0) firstAt = lastAt;
      const { timestamp } = JSON.parse(Buffer.concat(chunks).toString()) as { timestamp: string };
      latenciesMs.push(lastAt - Date.parse(timestamp));
    });
  });
  server.listen(0, '127.0.0.1', () => {
    process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  process.on('message', (message: { how?: Misbehaviour; what?: string }) => {
    if (message.how !== undefined) how = message.how;
    if (message.what === 'count') process.send?.(latenciesMs.length);
    if (message.what !== 'take') return;
    latenciesMs.sort((a, b) => a - b);
    process.send?.({ received: latenciesMs.length, latenciesMs, firstAt, lastAt } satisfies Taken);
    latenciesMs = [];
  });
  process.on('disconnect', () => process.exit());
}

function misbehave(how: Misbehaviour, response: ServerResponse): void {
  if (how === 'reset') response.socket?.resetAndDestroy();
  if (how === 'answer 500') response.writeHead(500).end();
  if (how !== 'drip') return;
  response.writeHead(200);
  const dripping = setInterval(() => response.write('.'), DRIP_EVERY_MS);
  response.on('close', () => clearInterval(dripping));
}
