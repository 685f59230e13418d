/** What the drivers of `benchmarks/peers-by-url` send. The products do not run here: a server of the test records requests. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { peerByUrl } from '../../benchmarks/deliver-peers.ts';
import { convoy } from '../../benchmarks/peers-by-url/convoy.ts';
import { hookaido } from '../../benchmarks/peers-by-url/hookaido.ts';
import { outpost } from '../../benchmarks/peers-by-url/outpost.ts';
import type { Peer } from '../../benchmarks/peers-by-url/peer.ts';
import { svix } from '../../benchmarks/peers-by-url/svix.ts';
import { startSink } from '../../benchmarks/sink.ts';

const ENDPOINTS = ['http://127.0.0.1:9/peer/0', 'http://127.0.0.1:9/peer/1'];
const NAME = /benchmark-[0-9a-z]+-/g;

interface Sent {
  call: string;
  authorization: string | undefined;
  body: unknown;
}

/** A server that records requests, and responds with these objects in turn. */
async function product(t: TestContext, respond: (call: string) => unknown, status = 201) {
  const sent: Sent[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const call = `${request.method} ${request.url}`.replace(NAME, 'benchmark-');
    const body = text === '' ? undefined : JSON.parse(text.replace(NAME, 'benchmark-'));
    sent.push({ call, authorization: request.headers.authorization, body });
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(respond(call)));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent };
}

/** The requests that create two endpoints, and those that send a message to each. */
async function requestsOf(peer: Peer, input: { url: string; token: string; sent: Sent[] }) {
  const { url, token, sent } = input;
  const senders = await peer.connect({ url, token, endpoints: ENDPOINTS });
  const created = sent.splice(0);
  for (const [n, send] of senders.entries()) {
    const [head = '', body] = send(`{"n":${n}}`).bytes.toString().split('\r\n\r\n');
    const [, method = '', path = ''] = /^(\w+) (\S+) HTTP\/1\.1\r\n/.exec(head) ?? [];
    const headers = Object.fromEntries(
      head
        .split('\r\n')
        .slice(1)
        .map((line) => line.split(': ')),
    );
    assert.equal(headers['content-length'], String(body?.length));
    assert.equal(headers.host, new URL(url).host);
    await fetch(new URL(path, url), { method, headers, body: body ?? '' });
  }
  return { created, messages: sent };
}

test('Svix gets an application with an endpoint for each endpoint', async (t) => {
  let made = 0;
  const { url, sent } = await product(t, () => ({ id: `app_${Math.floor(made++ / 2)}` }));
  const { created, messages } = await requestsOf(svix, { url, token: 'secret', sent });
  const authorization = 'Bearer secret';
  assert.deepEqual(
    created,
    ENDPOINTS.flatMap((endpoint, n) => [
      { call: 'POST /api/v1/app/', authorization, body: { name: `benchmark-${n}` } },
      { call: `POST /api/v1/app/app_${n}/endpoint/`, authorization, body: { url: endpoint } },
    ]),
  );
  assert.deepEqual(
    messages,
    ENDPOINTS.map((_, n) => ({
      call: `POST /api/v1/app/app_${n}/msg/`,
      authorization,
      body: { eventType: 'benchmark.sent', payload: { n } },
    })),
  );
});

test('Outpost gets a tenant with a destination for each endpoint, and the URL of its API is required', async (t) => {
  const { url: origin, sent } = await product(t, () => ({}));
  const url = `${origin}/api/v1`;
  const { created, messages } = await requestsOf(outpost, { url, token: 'secret', sent });
  const authorization = 'Bearer secret';
  assert.deepEqual(
    created,
    ENDPOINTS.flatMap((endpoint, n) => [
      { call: `PUT /api/v1/tenants/benchmark-${n}`, authorization, body: undefined },
      {
        call: `POST /api/v1/tenants/benchmark-${n}/destinations`,
        authorization,
        body: { type: 'webhook', topics: ['benchmark.sent'], config: { url: endpoint } },
      },
    ]),
  );
  assert.deepEqual(
    messages,
    ENDPOINTS.map((_, n) => ({
      call: 'POST /api/v1/publish',
      authorization,
      body: {
        tenant_id: `benchmark-${n}`,
        topic: 'benchmark.sent',
        eligible_for_retry: true,
        data: { n },
      },
    })),
  );
  const wrong = outpost.connect({ url: origin, token: 'secret', endpoints: ENDPOINTS });
  await assert.rejects(wrong, /does not end with \/api\/v1/);
});

test('Convoy gets an endpoint with a subscription for each endpoint, in the project of the URL', async (t) => {
  let made = 0;
  const { url: origin, sent } = await product(t, () => ({ data: { uid: `ep_${Math.floor(made++ / 2)}` } }));
  const url = `${origin}/api/v1/projects/p1`;
  const { created, messages } = await requestsOf(convoy, { url, token: 'secret', sent });
  const authorization = 'Bearer secret';
  assert.deepEqual(
    created,
    ENDPOINTS.flatMap((endpoint, n) => [
      {
        call: 'POST /api/v1/projects/p1/endpoints',
        authorization,
        body: { name: `benchmark-${n}`, url: endpoint },
      },
      {
        call: 'POST /api/v1/projects/p1/subscriptions',
        authorization,
        body: { name: `benchmark-${n}`, endpoint_id: `ep_${n}`, filter_config: { event_types: ['*'] } },
      },
    ]),
  );
  assert.deepEqual(
    messages,
    ENDPOINTS.map((_, n) => ({
      call: 'POST /api/v1/projects/p1/events',
      authorization,
      body: { endpoint_id: `ep_${n}`, event_type: 'benchmark.sent', data: { n } },
    })),
  );
  const wrong = convoy.connect({ url: origin, token: 'secret', endpoints: ENDPOINTS });
  await assert.rejects(wrong, /is not the URL of a project/);
});

test('Hookaido gets messages at the route of each endpoint, with basic credentials', async (t) => {
  const { url, sent } = await product(t, () => ({}));
  const { created, messages } = await requestsOf(hookaido, { url, token: 'user:password', sent });
  assert.deepEqual(created, []);
  const authorization = 'Basic dXNlcjpwYXNzd29yZA==';
  const expected = [0, 1].map((n) => ({ call: `POST /${n}`, authorization, body: { n } }));
  assert.deepEqual(messages, expected);
  const without = await requestsOf(hookaido, { url, token: '', sent });
  assert.deepEqual(
    without.messages.map(({ authorization: none }) => none),
    [undefined, undefined],
  );
});

test('a product gets 50 endpoints that respond, and 5 that hang while the others are measured', async (t) => {
  const sink = await startSink();
  t.after(() => sink.stop());
  const { url, sent } = await product(t, () => ({ id: 'app' }));
  await peerByUrl(`svix=${url}`, sink);
  const paths = sent.flatMap(({ body }) => {
    const { url: endpoint } = body as { url?: string };
    return endpoint === undefined ? [] : [new URL(endpoint).pathname];
  });
  assert.equal(paths.length, 55);
  assert.deepEqual(
    [paths[0], paths[49], paths[50], paths[54]],
    ['/svix/0', '/svix/49', '/svix/bad/50', '/svix/bad/54'],
  );
});

test('an error of a product says what the product needs', async (t) => {
  const sink = await startSink();
  t.after(() => sink.stop());
  const { url } = await product(t, () => ({ message: 'No such topic' }), 422);
  await assert.rejects(
    peerByUrl(`outpost=${url}/api/v1`, sink),
    /PUT \S+ returned 422: \{"message":"No such topic"\}\. Outpost needs .* TOPICS, .* DELIVERY_MAX_CONCURRENCY/,
  );
});

test('the sink counts the requests to each of its parts', async (t) => {
  const sink = await startSink();
  t.after(() => sink.stop());
  const [one, other] = [sink.under('/one'), sink.under('/other')];
  const body = JSON.stringify({ timestamp: new Date().toISOString() });
  const urls = [`${one.url}/0`, `${one.url}/0`, `${one.url}/1`, `${other.url}/0`, `${sink.url}/one-more`];
  for (const url of urls) assert.equal((await fetch(url, { method: 'POST', body })).status, 204);
  assert.deepEqual([await sink.count(), await one.count(), await other.count()], [5, 3, 1]);
  const { received, paths, latenciesMs } = await one.take();
  assert.deepEqual([received, paths, latenciesMs.length], [3, 2, 3]);
  assert.deepEqual([await sink.count(), await one.count(), await other.count()], [2, 0, 1]);
});
