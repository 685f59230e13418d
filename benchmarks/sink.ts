/**
 * A webhook endpoint in a separate process. It counts requests, measures their latency, and misbehaves on request. It uses bare
 * sockets and reads only the path, the length and the timestamp in the body, because it shares the processors with the sender.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** How paths that begin with `/bad` behave. All others return 204 immediately. */
export type Misbehavior = 'none' | 'hang' | 'drip' | 'reset' | 'return 500';

export interface Taken {
  /** Requests to paths other than `/bad`. */
  received: number;
  /** Milliseconds from the first `timestamp` in a body to its arrival, ascending. */
  latenciesMs: number[];
  /** Arrival of the first and the last request, in epoch milliseconds. */
  firstAt: number;
  lastAt: number;
}

export interface Sink {
  url: string;
  misbehave(how: Misbehavior): void;
  /** Requests since the last `take`. */
  count(): Promise<number>;
  /** Returns the requests since the last call, and resets them. */
  take(): Promise<Taken>;
  stop(): void;
}

const DRIP_EVERY_MS = 1_000;

/** @param at where to listen. Default: a free port on loopback */
export async function startSink(at = 'http://127.0.0.1:0'): Promise<Sink> {
  const child = fork(import.meta.filename, ['run', at]);
  const [url] = (await once(child, 'message')) as [string];
  return {
    url,
    misbehave: (how) => child.send({ how }),
    count: () => request<number>(child, 'count'),
    take: () => request<Taken>(child, 'take'),
    stop: () => child.kill(),
  };
}

async function request<T>(child: ChildProcess, command: string): Promise<T> {
  const reply = once(child, 'message');
  child.send({ command });
  return (await reply)[0] as T;
}

if (process.argv[2] === 'run') run(new URL(process.argv[3] ?? ''));

function run({ hostname, port }: URL): void {
  let how: Misbehavior = 'none';
  let latenciesMs: number[] = [];
  let firstAt = 0;
  let lastAt = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    let got = '';
    socket.setEncoding('latin1');
    socket.on('error', () => {});
    socket.on('data', (chunk: string) => {
      got += chunk;
      for (;;) {
        const head = got.indexOf('\r\n\r\n') + 4;
        if (head < 4) return;
        const length = Number(/\r\ncontent-length: *(\d+)/i.exec(got.slice(0, head))?.[1] ?? 0);
        if (got.length < head + length) return;
        const isBad = got.startsWith('POST /bad');
        const body = got.slice(head, head + length);
        got = got.slice(head + length);
        if (isBad && how !== 'none') misbehave(how, socket);
        else socket.write(received());
        if (isBad) continue;
        lastAt = Date.now();
        if (latenciesMs.length === 0) firstAt = lastAt;
        latenciesMs.push(lastAt - sentAt(body));
      }
    });
  });
  server.listen(Number(port), hostname, () => {
    process.send?.(`http://${hostname}:${(server.address() as AddressInfo).port}`);
  });
  process.on('message', (message: { how?: Misbehavior; command?: string }) => {
    if (message.how !== undefined) how = message.how;
    if (message.command === 'count') process.send?.(latenciesMs.length);
    if (message.command !== 'take') return;
    latenciesMs.sort((a, b) => a - b);
    process.send?.({ received: latenciesMs.length, latenciesMs, firstAt, lastAt } satisfies Taken);
    latenciesMs = [];
  });
  process.on('disconnect', () => process.exit());
}

/** Some products reformat a body, with spaces after its colons. */
function sentAt(body: string): number {
  const from = body.indexOf('"', body.indexOf('"timestamp"') + '"timestamp"'.length) + 1;
  return Date.parse(body.slice(from, body.indexOf('"', from)));
}

let response = '';
let responseUntil = 0;

/** The response of Node's own server, because senders read its headers and how long they may keep the connection. */
function received(): string {
  const now = Date.now();
  if (now < responseUntil) return response;
  responseUntil = now - (now % 1_000) + 1_000;
  const date = new Date(now).toUTCString();
  response = `HTTP/1.1 204 No Content\r\nDate: ${date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n`;
  return response;
}

function misbehave(how: Misbehavior, socket: Socket): void {
  if (how === 'reset') socket.resetAndDestroy();
  if (how === 'return 500') socket.write('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n');
  if (how !== 'drip') return;
  socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n');
  const dripping = setInterval(() => socket.write('.'), DRIP_EVERY_MS);
  socket.on('close', () => clearInterval(dripping));
}
