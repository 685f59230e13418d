/** Connections to a real server: which of them a request uses. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { Connections } from './connections.ts';
import { request } from './undici.ts';

async function setUp(t: TestContext, { lifeMs = 60_000 } = {}) {
  const sockets: Socket[] = [];
  const held: ServerResponse[] = [];
  const server = createServer((asked, response) => {
    sockets.push(asked.socket);
    if (asked.url === '/hold') held.push(response);
    else if (asked.url === '/last') response.writeHead(204, { connection: 'close' }).end();
    else response.writeHead(204).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connections = new Connections({ lifeMs });
  t.after(async () => {
    await connections.destroy();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  async function get(path: string): Promise<void> {
    const { body } = await request(new URL(url + path), { method: 'GET', dispatcher: connections });
    await body.dump();
    // Undici uses a connection again in the next turn of the event loop.
    await new Promise(setImmediate);
  }
  /** Starts requests whose responses `release` sends. */
  async function hold(count: number): Promise<{ release(): Promise<unknown> }> {
    const got = Array.from({ length: count }, () => get('/hold'));
    while (held.length < count) await once(server, 'request');
    return {
      release() {
        for (const response of held.splice(0)) response.writeHead(204).end();
        return Promise.all(got);
      },
    };
  }
  return { connections, get, hold, used: () => new Set(sockets).size };
}

test('opens a connection for each simultaneous request, and uses them again', async (t) => {
  const { get, hold, used } = await setUp(t);
  await (await hold(3)).release();
  assert.equal(used(), 3);
  await (await hold(3)).release();
  await get('/');
  assert.equal(used(), 3);
});

test('uses no connection that the server has closed, or that has reached its maximum age', async (t) => {
  const closing = await setUp(t);
  await closing.get('/last');
  await closing.get('/');
  assert.equal(closing.used(), 2);
  const aging = await setUp(t, { lifeMs: 0 });
  await aging.get('/');
  await aging.get('/');
  assert.equal(aging.used(), 2);
});

test('close waits for requests in progress, and refuses others', async (t) => {
  const { connections, get, hold, used } = await setUp(t);
  const requests = await hold(2);
  let isClosed = false;
  const closed = connections.close().then(() => {
    isClosed = true;
  });
  await assert.rejects(get('/'), { code: 'UND_ERR_DESTROYED' });
  assert.equal(isClosed, false);
  await requests.release();
  await closed;
  assert.equal(used(), 2);
});
