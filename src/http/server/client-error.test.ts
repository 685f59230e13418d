/** Slow requests to a server with short timeouts. */
import assert from 'node:assert/strict';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { Problem } from '../../model/error.ts';
import { silentLogger } from '../../observe/log.ts';
import { createClientErrorHandler } from './client-error.ts';

/** Sends half a body, waits for the server's timeout, sends the rest, and returns the response. */
async function sendSlowly(t: TestContext, streamsBody: boolean): Promise<{ status: number; text: string }> {
  const responses = new WeakMap<object, ServerResponse>();
  const handle = createClientErrorHandler({
    responseOn: (socket) => responses.get(socket),
    isFrozen: () => false,
    unknownMethod: () => new Problem('route_not_found'),
    streamsBody: () => streamsBody,
    log: silentLogger,
  });
  const server = createServer(
    { requestTimeout: 20, headersTimeout: 20, connectionsCheckingInterval: 5 },
    (request, response) => {
      responses.set(request.socket, response);
      let size = 0;
      request.on('error', () => {});
      request.on('data', (chunk: Buffer) => {
        size += chunk.length;
      });
      request.on('end', () => response.end(`${size} bytes`));
    },
  );
  const tooSlow = Promise.withResolvers<void>();
  server.on('clientError', (error, socket) => {
    handle(error, socket);
    tooSlow.resolve();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const request = httpRequest({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    method: 'POST',
    agent: false,
  });
  request.on('error', () => {});
  const answered = new Promise<IncomingMessage>((resolve) => request.once('response', resolve));
  request.write('half ');
  await tooSlow.promise;
  request.end('a body');
  const response = await answered;
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() };
}

test('a request that takes too long is refused', async (t) => {
  const { status, text } = await sendSlowly(t, false);
  assert.equal(status, 400);
  assert.match(text, /took too long to arrive/);
});

test('a request of an operation with `streamsBody` is read to its end', async (t) => {
  assert.deepEqual(await sendSlowly(t, true), { status: 200, text: '11 bytes' });
});
