/**
 * Readers in a separate process, with bare sockets and a reused buffer, so that they cost little more than the copying in the
 * kernel, and do not count for the server.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';

export interface ReadRequest {
  url: string;
  headers: Record<string, string>;
  /** Connections that read at the same time. Default: 1. */
  readers?: number;
  /** Reads in sequence on each connection. Default: 1. */
  reads?: number;
  /** How long each reader pauses after the first bytes of a body. With it, the body is hashed. */
  pauseMs?: number;
}

export interface ReadResult {
  /** Bytes of all bodies, as sent. */
  bytes: number;
  /** Mean time from a request to the first byte of its body. */
  firstMs: number;
  /** Time from the first request to the last byte. Connections are opened before. */
  seconds: number;
  version: string;
  /** Hash of the last body. Empty without a pause. */
  sha256: string;
}

/** Starts the process of the readers. It handles one call at a time. */
export function startReader(): { read(input: ReadRequest): Promise<ReadResult>; stop(): Promise<void> } {
  const child = fork(fileURLToPath(import.meta.url));
  return {
    async read(input) {
      const done = new AbortController();
      const { signal } = done;
      const reply = Promise.race([once(child, 'message', { signal }), once(child, 'exit', { signal })]);
      child.send(input);
      const [result] = (await reply) as [ReadResult | { error: string } | number];
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
    readAll(input).then(
      (result) => process.send?.(result),
      (error: Error) => process.send?.({ error: error.message }),
    );
  });
}

async function readAll(input: ReadRequest): Promise<ReadResult> {
  const { readers = 1, reads = 1 } = input;
  const connections = await Promise.all(Array.from({ length: readers }, () => open(input)));
  const from = performance.now();
  const responses = await Promise.all(
    connections.map(async (connection) => {
      const read: BodyRead[] = [];
      for (let n = 0; n < reads; n++) read.push(await connection.read());
      return read;
    }),
  );
  const seconds = (performance.now() - from) / 1_000;
  for (const connection of connections) connection.close();
  const all = responses.flat();
  return {
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    firstMs: all.reduce((sum, { firstMs }) => sum + firstMs, 0) / all.length,
    seconds,
    version: all.at(-1)?.headers.get('x-data-version') ?? '',
    sha256: all.at(-1)?.sha256 ?? '',
  };
}

interface BodyRead {
  status: number;
  headers: Map<string, string>;
  bytes: number;
  firstMs: number;
  sha256: string;
}

/** A connection that repeats a request. */
async function open(input: ReadRequest): Promise<{ read(): Promise<BodyRead>; close(): void }> {
  const { host, hostname, port, pathname, search } = new URL(input.url);
  const lines = Object.entries({ host, ...input.headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const request = `GET ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`;
  let feed: (bytes: Buffer) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const socket = connect({
    host: hostname,
    port: Number(port),
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafeSlow(262_144),
      callback: (length, buffer) => {
        feed((buffer as Buffer).subarray(0, length));
        return true;
      },
    },
  });
  await once(socket, 'connect');
  socket.on('error', (error) => fail(error));
  socket.on('close', () => fail(new Error('The connection was closed in the middle of a response')));
  const { pauseMs } = input;
  return {
    close: () => socket.destroy(),
    read: () =>
      new Promise((resolve, reject) => {
        fail = reject;
        const hash = createHash('sha256');
        const sentAt = performance.now();
        const response: BodyRead = { status: 0, headers: new Map(), bytes: 0, firstMs: 0, sha256: '' };
        feed = follow({
          onLine: (line) => {
            const [name = '', value = ''] = line.split(': ');
            if (response.status === 0) response.status = Number(line.split(' ')[1]);
            else response.headers.set(name.toLowerCase(), value);
          },
          onBytes: (bytes) => {
            if (response.bytes === 0) {
              response.firstMs = performance.now() - sentAt;
              if (pauseMs !== undefined) {
                socket.pause();
                setTimeout(() => socket.resume(), pauseMs);
              }
            }
            response.bytes += bytes.length;
            if (pauseMs !== undefined) hash.update(bytes);
          },
          onEnd: () => {
            if (pauseMs !== undefined) response.sha256 = hash.digest('hex');
            if (response.status === 200) resolve(response);
            else reject(new Error(`${input.url} returned ${response.status}`));
          },
        });
        socket.write(request);
      }),
  };
}

/** Parses one HTTP/1.1 response: its head, and its body by length or in chunks (RFC 9112). */
function follow(events: {
  onLine: (line: string) => void;
  onBytes: (bytes: Buffer) => void;
  onEnd: () => void;
}): (bytes: Buffer) => void {
  let reading: 'head' | 'size of a chunk' | 'end of a chunk' | 'trailer' | 'body' = 'head';
  let length = 0;
  let isChunked = false;
  let line = '';
  let left = 0;

  function begin(bytes: number): void {
    left = bytes;
    reading = 'body';
    if (left === 0) events.onEnd();
  }

  function take(text: string): void {
    if (reading === 'head' && text !== '') {
      length = Number(/^content-length: *(\d+)/i.exec(text)?.[1] ?? length);
      isChunked ||= /^transfer-encoding: *chunked/i.test(text);
      events.onLine(text);
    } else if (reading === 'head' && !isChunked) begin(length);
    else if (reading === 'size of a chunk') {
      left = Number.parseInt(text, 16);
      reading = left === 0 ? 'trailer' : 'body';
    } else if (reading !== 'trailer') reading = 'size of a chunk';
    else if (text === '') events.onEnd();
  }

  return (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      if (reading === 'body') {
        const part = bytes.subarray(at, at + left);
        at += part.length;
        left -= part.length;
        events.onBytes(part);
        if (left === 0 && isChunked) reading = 'end of a chunk';
        else if (left === 0) events.onEnd();
      } else {
        const end = bytes.indexOf(0x0a, at);
        line += bytes.toString('latin1', at, end === -1 ? bytes.length : end);
        at = end === -1 ? bytes.length : end + 1;
        if (end === -1) continue;
        take(line.trimEnd());
        line = '';
      }
    }
  };
}
