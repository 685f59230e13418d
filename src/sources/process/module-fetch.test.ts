/** `ctx.fetch`: its address guard, user agent, per-host limit and retries. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { directoryOf, finish, start } from '../../../test/support/jobs/sources.ts';
import { parseAllowNetworks } from '../../net/address-policy.ts';
import { createHostTurns, type HostTurns } from '../../net/host-turns.ts';
import { createFetch } from './module-fetch.ts';

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function politeFetch(
  input: { turns?: HostTurns; signal?: AbortSignal; onWait?(sentence: string): void } = {},
) {
  return createFetch({
    allowNetworks: 'loopback',
    turns: input.turns ?? createHostTurns().of('a', { bindsOthers: true }),
    signal: input.signal ?? new AbortController().signal,
    onWait: input.onWait ?? (() => {}),
  });
}

test('a module fetches with the user agent of Flowhook, only where the policy allows it', async (t) => {
  const url = await serve(t, (request, response) =>
    response.end(JSON.stringify({ id: request.headers['user-agent'] })),
  );
  const workflowsDirectory = await directoryOf(t, {
    'acme/one.mts': `
      export default async function* (ctx: any) {
        const response: Response = await ctx.fetch(${JSON.stringify(url)});
        if (!(response instanceof Response)) throw new Error('not a Response');
        yield await response.json();
        yield await (await ctx.fetch(new Request(${JSON.stringify(url)}, { headers: { 'user-agent': 'mine' } }))).json();
      }`,
  });
  const fetchPolicy = parseAllowNetworks('loopback');
  const { lines, end } = await finish(await start(t, { workflowsDirectory, fetchPolicy }));
  assert.equal(end.ok, true);
  assert.match(lines[0] ?? '', /^\{"id":"flowhook\/\d+\.\d+\.\d+"\}$/);
  assert.equal(lines[1], '{"id":"mine"}');

  const refused = await finish(await start(t, { workflowsDirectory }));
  assert.ok(!refused.end.ok);
  assert.match(
    refused.end.error,
    /127\.0\.0\.1 is a loopback address .* FLOWHOOK_ALLOW_NETWORKS does not allow/,
  );
});

test('a redirect to an address that is not allowed is refused too', async (t) => {
  const url = await serve(t, (_request, response) => {
    response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end();
  });
  await assert.rejects(politeFetch()(url), (error: Error) => /link-local/.test(String(error.cause)));
});

test('at most four requests to one host wait for a response at the same time', async (t) => {
  const waiting: (() => void)[] = [];
  let most = 0;
  const four = Promise.withResolvers<void>();
  const url = await serve(t, (_request, response) => {
    waiting.push(() => response.end('ok'));
    most = Math.max(most, waiting.length);
    if (waiting.length === 4) four.resolve();
    // From the fifth request, each response makes room for the next request.
    if (most === 4 && waiting.length < 4) waiting.shift()?.();
  });
  const polite = politeFetch();
  const responses = Array.from({ length: 12 }, () => polite(url));
  await four.promise;
  for (let respond = waiting.shift(); respond !== undefined; respond = waiting.shift()) respond();
  assert.deepEqual(
    (await Promise.all(responses)).map(({ status }) => status),
    Array(12).fill(200),
  );
  assert.equal(most, 4);
});

test('a request is retried with its body when the host asks to wait, a limited number of times', async (t) => {
  const bodies: string[] = [];
  const said: string[] = [];
  let refusals = 2;
  const url = await serve(t, async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    if (refusals-- > 0) response.writeHead(429, { 'retry-after': '0' });
    response.end('answer');
  });
  const polite = politeFetch({ onWait: (sentence) => said.push(sentence) });
  const answer = await polite(url, { method: 'POST', body: 'question' });
  assert.equal(await answer.text(), 'answer');
  assert.deepEqual(bodies, ['question', 'question', 'question']);
  assert.match(said[0] ?? '', /^127\.0\.0\.1:\d+ returned 429 and asks to wait 0 s$/);

  refusals = 100;
  assert.equal((await polite(url)).status, 429);
  assert.equal(bodies.length, 3 + 6);
});

test('a 503 without Retry-After, with one that is too long, or for a streamed body, is returned to the caller', async (t) => {
  let asked = 0;
  let retryAfter: string | undefined;
  const url = await serve(t, (request, response) => {
    asked++;
    request.resume();
    response.writeHead(503, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end();
  });
  const polite = politeFetch();
  assert.equal((await polite(url)).status, 503);
  retryAfter = '3600';
  assert.equal((await polite(url)).status, 503);
  retryAfter = '0';
  const body = new Blob(['x']).stream();
  assert.equal((await polite(url, { method: 'POST', body, duplex: 'half' } as RequestInit)).status, 503);
  assert.equal(asked, 3);
});

test('the signal aborts requests that are in progress, queued, or waiting for a retry', async (t) => {
  const stop = new AbortController();
  let asked = 0;
  const url = await serve(t, (request, response) => {
    asked++;
    if (request.url === '/later') response.writeHead(429, { 'retry-after': '60' }).end();
    else if (asked === 4) stop.abort(new Error('enough'));
  });
  const later = await serve(t, (_request, response) =>
    response.writeHead(429, { 'retry-after': '60' }).end(),
  );
  const told = Promise.withResolvers<void>();
  const polite = politeFetch({ signal: stop.signal, onWait: () => told.resolve() });
  const waiting = polite(later);
  await told.promise;
  const all = await Promise.allSettled([waiting, ...Array.from({ length: 8 }, () => polite(url))]);
  assert.ok(all.every((one) => one.status === 'rejected' && /enough/.test(String(one.reason))));
  assert.equal(asked, 4);
});

test('modules share the limit of a host with the other jobs of the server', async (t) => {
  const waiting: (() => void)[] = [];
  const four = Promise.withResolvers<void>();
  let most = 0;
  const url = await serve(t, (_request, response) => {
    waiting.push(() => response.end('{}'));
    most = Math.max(most, waiting.length);
    if (waiting.length === 4) four.resolve();
  });
  const module = `export default async function* (ctx: any) {
    const responses = await Promise.all([1, 2, 3].map(() => ctx.fetch(${JSON.stringify(url)})));
    for (const response of responses) yield await response.json();
  }`;
  const workflowsDirectory = await directoryOf(t, { 'acme/one.mts': module });
  const fetchPolicy = parseAllowNetworks('loopback');
  const both = [1, 2].map(async () => finish(await start(t, { workflowsDirectory, fetchPolicy })));
  await four.promise;
  // Each response makes room for a waiting request. The last two requests arrive only then.
  let done = 0;
  while (done < 6) {
    const respond = waiting.shift();
    if (respond === undefined) await new Promise((resolve) => setImmediate(resolve));
    else done += 1;
    respond?.();
  }
  for (const { lines, end } of await Promise.all(both)) assert.deepEqual([lines.length, end.ok], [3, true]);
  assert.equal(most, 4);
});
