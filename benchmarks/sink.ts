/**
 * A webhook endpoint in a separate process. It counts requests, measures their latency, and misbehaves on request. It uses bare
 * sockets and reads only the path, the length and the timestamp in the body, because it shares the processors with the sender.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** How paths with `/bad/` behave. All others return 204 immediately. */
export type Misbehavior = 'none' | 'hang' | 'drip' | 'reset' | 'return 500';

export interface Taken {
  /** Requests to paths without `/bad/`. */
  received: number;
  /** Number of different paths among them. */
  paths: number;
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
  /** The part of this sink below a path. It does not count late requests to other parts. */
  under(path: string): Sink;
  stop(): void;
}

const DRIP_EVERY_MS = 1_000;

/** @param at where to listen. Default: a free port on loopback */
export async function startSink(at = 'http://127.0.0.1:0'): Promise<Sink> {
  const child = fork(import.meta.filename, ['run', at]);
  const [url] = (await once(child, 'message')) as [string];
  const part = (path: string): Sink => ({
    url: url + path,
    misbehave: (how) => child.send({ how }),
    count: () => request<number>(child, { command: 'count', path }),
    take: () => request<Taken>(child, { command: 'take', path }),
    under: (more) => part(path + more),
    stop: () => child.kill(),
  });
  return part('');
}

interface Command {
  command: 'count' | 'take';
  /** Selects requests to this path and below. */
  path: string;
}

async function request<T>(child: ChildProcess, command: Command): Promise<T> {
  const reply = once(child, 'message');
  child.send(command);
  return (await reply)[0] as T;
}

/** The requests to one path. */
interface Received {
  latenciesMs: number[];
  firstAt: number;
  lastAt: number;
}

if (process.argv[2] === 'run') run(new URL(process.argv[3] ?? ''));

function run({ hostname, port }: URL): void {
  let how: Misbehavior = 'none';
  const received = new Map<string, Received>();
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
        const path = got.slice('POST '.length, got.indexOf(' ', 'POST '.length));
        const isBad = path.includes('/bad/');
        const body = got.slice(head, head + length);
        got = got.slice(head + length);
        if (isBad && how !== 'none') misbehave(how, socket);
        else socket.write(noContent());
        if (isBad) continue;
        const at = Date.now();
        let ofPath = received.get(path);
        if (ofPath === undefined) {
          ofPath = { latenciesMs: [], firstAt: at, lastAt: at };
          received.set(path, ofPath);
        }
        ofPath.lastAt = at;
        ofPath.latenciesMs.push(at - sentAt(body));
      }
    });
  });
  server.listen(Number(port), hostname, () => {
    process.send?.(`http://${hostname}:${(server.address() as AddressInfo).port}`);
  });
  process.on('message', (message: { how: Misbehavior } | Command) => {
    if ('how' in message) {
      how = message.how;
      return;
    }
    const { command, path } = message;
    const paths = [...received.keys()].filter((one) => one === path || one.startsWith(`${path}/`));
    const found = paths.map((one) => received.get(one) as Received);
    if (command === 'count') {
      process.send?.(found.reduce((sum, { latenciesMs }) => sum + latenciesMs.length, 0));
      return;
    }
    for (const one of paths) received.delete(one);
    const latenciesMs = found.flatMap((one) => one.latenciesMs).sort((a, b) => a - b);
    process.send?.({
      received: latenciesMs.length,
      paths: paths.length,
      latenciesMs,
      firstAt: Math.min(...found.map(({ firstAt }) => firstAt)),
      lastAt: Math.max(...found.map(({ lastAt }) => lastAt)),
    } satisfies Taken);
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
function noContent(): string {
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
