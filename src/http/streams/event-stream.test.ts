/** Event streams to clients that stall and clients that read, on real sockets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { Reply, Request } from '../server/exchange.ts';
import { EventStream } from './event-stream.ts';

const MESSAGE = { event: 'much', data: 'x'.repeat(100_000) };

async function serve(run: (stream: EventStream) => Promise<void>, bounds: { heartbeatMs?: number } = {}) {
  let done: Promise<void> = Promise.resolve();
  const server = createServer((request, response) => {
    const reply = new Reply(new Request(request, false), response);
    const stream = new EventStream(reply, { maxBuffered: 1_000_000, ...bounds });
    done = run(stream);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    url,
    done: () => done,
    close: () => new Promise((resolve) => server.close(resolve)),
    /** Sends a request and does not read the response. */
    stalled: () => {
      const socket = connect(Number(url.port), url.hostname);
      socket.pause();
      socket.on('error', () => {});
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      return socket;
    },
  };
}

test('disconnects a client with too many unread bytes', async () => {
  let isOver = () => {};
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  const { stalled, close } = await serve(async (stream) => {
    for (let sent = 0; stream.isOpen && sent < 1_000; sent += 1) stream.send(MESSAGE);
    await stream.closed;
    isOver();
  });
  const socket = stalled();
  await over;
  socket.destroy();
  await close();
});

test('disconnects a client that reads nothing between two heartbeats', async () => {
  let isOver = () => {};
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  const { stalled, close } = await serve(
    async (stream) => {
      // Sends as much as the socket buffers, and one message more.
      do {
        stream.send(MESSAGE);
        // Bytes in the socket's buffer count as unread until the next turn.
        for (let turns = 0; turns < 5 && stream.unread > 0; turns += 1) await turn();
      } while (stream.isOpen && stream.unread === 0);
      await stream.closed;
      isOver();
    },
    { heartbeatMs: 20 },
  );
  const socket = stalled();
  await over;
  socket.destroy();
  await close();
});

test('sends everything to a client that reads', async () => {
  const { url, close } = await serve(async (stream) => {
    for (let sent = 0; sent < 100; sent += 1) {
      stream.send({ ...MESSAGE, id: sent });
      await stream.drained();
    }
    stream.end();
  });
  const text = await (await fetch(url)).text();
  const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  assert.deepEqual(
    ids,
    Array.from({ length: 100 }, (_, id) => id),
  );
  await close();
});

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
