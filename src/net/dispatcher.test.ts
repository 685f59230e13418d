/** The address guard with real connections: refused requests never arrive. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { after, before, test } from 'node:test';
import { type Dispatcher, request } from 'undici';
import { parseAllowNetworks } from './address-policy.ts';
import { BlockedAddressError, createGuardedDispatcher } from './dispatcher.ts';
import { createResolver, type Resolver } from './resolver.ts';

/** A real receiver on loopback: it records the requests that the guard allows. */
let server: Server;
let port: number;
const arrived: IncomingMessage[] = [];

before(async () => {
  server = createServer((request, response) => {
    arrived.push(request);
    // One connection per request, so that each address is resolved and checked.
    response.setHeader('connection', 'close');
    if (request.url === '/moved') response.writeHead(301, { location: `http://127.0.0.1:${port}/new` });
    response.end('here');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});

after(() => server.close());

/** A resolver that returns the given results, one per call. */
function scripted(...answers: string[][]): Resolver & { calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    async resolve(hostname) {
      calls.push(hostname);
      return answers.shift() ?? [];
    },
  };
}

async function get(dispatcher: Dispatcher, origin: string, path = '/'): Promise<number> {
  const answer = await request(origin + path, { dispatcher });
  await answer.body.text();
  return answer.statusCode;
}

function guarded(setting: string, resolver: Resolver = createResolver()): Dispatcher {
  return createGuardedDispatcher({ policy: parseAllowNetworks(setting), resolver, connectMs: 2_000 });
}

test('refuses every spelling of a loopback address before a byte reaches it', async (t) => {
  const dispatcher = guarded('none');
  t.after(() => dispatcher.destroy());
  arrived.length = 0;
  for (const host of [
    '127.0.0.1',
    '127.1',
    '[::ffff:127.0.0.1]',
    '2130706433',
    '0x7f.1',
    '017700000001',
    '0',
    '[::1]',
    '[::]',
    '[64:ff9b::7f00:1]',
    'localhost',
    'localhost.',
    'LOCALHOST',
    'app.localhost',
  ]) {
    // The URL parser normalizes the spelling of the host.
    await assert.rejects(
      get(dispatcher, new URL(`http://${host}:${port}`).origin),
      BlockedAddressError,
      host,
    );
  }
  assert.equal(arrived.length, 0);
});

test('the refusal names the address, its range and the setting', async (t) => {
  const dispatcher = guarded('none', scripted(['10.0.0.5']));
  t.after(() => dispatcher.destroy());
  await assert.rejects(get(dispatcher, `http://crm.example:${port}`), {
    name: 'BlockedAddressError',
    message:
      /^crm\.example resolves to 10\.0\.0\.5, and 10\.0\.0\.5 is a private address .*FLOWHOOK_ALLOW_NETWORKS/,
  });
});

test('allows the addresses of the setting, by literal and by name', async (t) => {
  const dispatcher = guarded('loopback');
  t.after(() => dispatcher.destroy());
  for (const host of ['127.0.0.1', 'localhost', 'localhost.', '2130706433']) {
    assert.equal(await get(dispatcher, new URL(`http://${host}:${port}`).origin), 200, host);
  }
});

test('refuses a name if any of its addresses is not allowed', async (t) => {
  arrived.length = 0;
  const dispatcher = guarded('127.0.0.1', scripted(['127.0.0.1', '10.0.0.5'], ['127.0.0.1', '::1']));
  t.after(() => dispatcher.destroy());
  await assert.rejects(get(dispatcher, `http://two.example:${port}`), BlockedAddressError);
  await assert.rejects(get(dispatcher, `http://two.example:${port}`), BlockedAddressError);
  assert.equal(arrived.length, 0);
});

test('connects to the checked address after a single lookup, so that a second result has no effect', async (t) => {
  arrived.length = 0;
  const resolver = scripted(['127.0.0.1'], ['127.0.0.2']);
  const dispatcher = guarded('127.0.0.1', resolver);
  t.after(() => dispatcher.destroy());
  assert.equal(await get(dispatcher, `http://rebind.example:${port}`), 200);
  assert.deepEqual(resolver.calls, ['rebind.example']);
  assert.equal(arrived[0]?.headers.host, `rebind.example:${port}`);
  await assert.rejects(get(dispatcher, `http://rebind.example:${port}`), BlockedAddressError);
  assert.equal(arrived.length, 1);
});

test('tries the next checked address if the first refuses connections', async (t) => {
  // Nothing listens at 127.0.0.3 on this port.
  const dispatcher = guarded('loopback', scripted(['127.0.0.3', '127.0.0.1']));
  t.after(() => dispatcher.destroy());
  assert.equal(await get(dispatcher, `http://two.example:${port}`), 200);
});

test('keeps the name in SNI when it connects to the checked address', async (t) => {
  const hello = Promise.withResolvers<Buffer>();
  const tcp = createTcpServer((socket) => {
    socket.once('data', (bytes: Buffer) => {
      hello.resolve(bytes);
      socket.destroy();
    });
    socket.on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  t.after(() => tcp.close());
  await once(tcp, 'listening');
  const dispatcher = guarded('loopback', scripted(['127.0.0.1']));
  t.after(() => dispatcher.destroy());
  const origin = `https://hooks.example:${(tcp.address() as AddressInfo).port}`;
  await assert.rejects(get(dispatcher, origin));
  assert.ok((await hello.promise).includes('hooks.example'));
});

test('does not follow redirects', async (t) => {
  arrived.length = 0;
  const dispatcher = guarded('loopback');
  t.after(() => dispatcher.destroy());
  assert.equal(await get(dispatcher, `http://127.0.0.1:${port}`, '/moved'), 301);
  assert.equal(arrived.length, 1);
});
