/** Graceful shutdown while requests have arrived that have not been read yet. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { drain, InFlight } from './requests.ts';

const REQUEST = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';

test('responds with `connection: close` to requests that arrived on idle connections before the shutdown', async (t) => {
  const inFlight = new InFlight({ waitMs: () => 0, log: silentLogger });
  const server = createServer((_request, response) => {
    inFlight.add(response, 'brief', 'a');
    response.once('close', () => inFlight.remove(response));
    response.end('answered');
  });
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  t.after(close);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const connections = await Promise.all(Array.from({ length: 30 }, () => used(port)));
  const answers = connections.map(({ untilClosed }) => untilClosed);
  // All requests are written within one turn, so that the server cannot have read any of them.
  for (const { socket } of connections) socket.write(REQUEST);
  const { cut } = await drain({ app: { server, close }, inFlight, withinMs: 60_000 });
  assert.equal(cut, 0);
  for (const answer of await Promise.all(answers)) {
    assert.match(answer, /^HTTP\/1\.1 200 .*connection: close.*answered$/is);
  }
});

/** A connection that has received one response. `untilClosed` resolves with the bytes that arrive until it is closed. */
async function used(port: number): Promise<{ socket: Socket; untilClosed: Promise<string> }> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  socket.write(REQUEST);
  while (!text.endsWith('answered')) await once(socket, 'data');
  text = '';
  return { socket, untilClosed: once(socket, 'close').then(() => text) };
}
