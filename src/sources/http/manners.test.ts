/** How requests are sent: retries, redirects, cookies, robots.txt, per-host limits, proxies and time limits. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { definitionOf, site, take } from '../../../test/support/jobs/source-site.ts';
import { createHostTurns } from '../../net/host-turns.ts';

const LIST = '[{"id":1}]';
const json = (response: ServerResponse, text = LIST) =>
  response.setHeader('content-type', 'application/json').end(text);

test('requests to an overloaded host are retried after the time that it asks for', async (t) => {
  const refusals: [status: number, headers?: Record<string, string[]>][] = [
    [429, { 'retry-after': ['0', '0'] }],
    [503, { 'retry-after': ['0'] }],
    [503],
    [500],
  ];
  const { url, asked } = await site(t, (_request, response) => {
    const refusal = refusals.shift();
    if (refusal === undefined) return json(response);
    response.writeHead(...refusal).end();
  });
  const rests: unknown[] = [];
  const turns = createHostTurns().of('a', { bindsOthers: true });
  const { records, said, waits } = await take(
    { source: { url } },
    {
      turns: {
        ...turns,
        rest: (host, ms, whom) => {
          rests.push([ms, whom]);
          turns.rest(host, ms, whom);
        },
      },
    },
  );
  assert.deepEqual(records, [{ id: 1 }]);
  assert.equal(asked.length, 5);
  assert.deepEqual(rests, [
    [0, 'team'],
    [0, 'all'],
  ]);
  assert.deepEqual(waits, [2_000, 4_000]);
  assert.match(
    said.join('\n'),
    /returned 429 Too Many Requests: retrying in 0 s\n.*503 Service Unavailable: retrying in 0 s\n.*503 .*\n.*500/,
  );
});

test('retries are limited, and the error quotes the response', async (t) => {
  let status = 503;
  const { url, asked } = await site(t, (_request, response) => {
    response
      .writeHead(status, status === 429 ? { 'retry-after': '3600' } : {})
      .end('<p>Down for <b>maintenance</b>');
  });
  await assert.rejects(
    take({ source: { url } }),
    /GET .* returned 503 Service Unavailable \(after 5 tries\): Down for maintenance$/,
  );
  assert.equal(asked.length, 5);
  status = 429;
  await assert.rejects(
    take({ source: { url } }),
    /429 Too Many Requests and asks to wait 3600 s, which is too long/,
  );
  status = 403;
  await assert.rejects(
    take({ source: { url } }),
    /403 Forbidden\. Check whether the source needs `source\.auth`/,
  );
  status = 404;
  await assert.rejects(take({ source: { url } }), /returned 404 Not Found: Down for/);
  assert.equal(asked.length, 8);
});

test('an interrupted response is requested again, unless some of its records were yielded', async (t) => {
  let broken = 1;
  const { url, asked } = await site(t, (request, response) => {
    const page = request.url === '/html' ? '<p id=1></p>' : `[{"id":1},${' '.repeat(100_000)}{"id":2}]`;
    response.setHeader('content-type', request.url === '/html' ? 'text/html' : 'application/json');
    if (request.url === '/robots.txt') return response.writeHead(404).end();
    if (broken-- <= 0) return response.end(page);
    response.setHeader('content-length', page.length);
    response.write(page.slice(0, Math.max(6, page.length - 10)), () => response.destroy());
  });
  const page = await take({
    source: { url: `${url}/html`, parse: 'html', records: 'p' },
    fields: { id: '@id' },
  });
  assert.deepEqual(page.records, [{ id: '1' }]);
  assert.match(page.said.join(), /was interrupted in the middle of the response .*: retrying/);
  broken = 1;
  asked.length = 0;
  await assert.rejects(
    take({ source: { url: `${url}/json` } }),
    /was interrupted in the middle of the response after 1 records/,
  );
  assert.equal(asked.length, 1);
});

test('a refused connection is retried, and then reported', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  await assert.rejects(
    take({ source: { url: `http://127.0.0.1:${port}` } }),
    /GET .* failed: .*ECONNREFUSED.* \(after 5 tries\)/,
  );
});

test('redirects to other hosts get no headers of the definition, and a redirect loop ends', async (t) => {
  const other = await site(t, { '/there': [{ id: 7 }] });
  const { url } = await site(t, {
    '/a': (_request, response) => response.writeHead(301, { location: '/b' }).end(),
    '/b': (_request, response) => response.writeHead(307, { location: `${other.url}/there` }).end(),
    '/loop': (_request, response) => response.writeHead(302, { location: '/loop' }).end(),
    '/file': (_request, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
    '/inside': (_request, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
  });
  const headers = { 'x-own': '1', cookie: 'a=b', 'User-Agent': 'me/key', 'accept-language': 'de' };
  const { records } = await take(
    { source: { url: `${url}/a`, headers, auth: { type: 'basic', username: 'u', password: 'p' } } },
    { named: [other.url] },
  );
  assert.deepEqual(records, [{ id: 7 }]);
  const sent = other.requests[0]?.headers ?? {};
  const own = [sent['x-own'], sent.authorization, sent.cookie, sent['accept-language']];
  assert.deepEqual(own, Array(4).fill(undefined));
  assert.equal(sent['user-agent'], 'flowhook/0.0.0');
  await assert.rejects(
    take({ source: { url: `${url}/loop` } }),
    /redirects more than 10 times, most recently to \/loop/,
  );
  await assert.rejects(
    take({ source: { url: `${url}/file` } }),
    /redirects to "file:\/\/\/etc\/passwd", which is not an HTTP URL/,
  );
  await assert.rejects(take({ source: { url: `${url}/inside` } }), /169\.254\.169\.254 is .* link-local/);
});

test('the Accept header asks for the format that is parsed, unless the definition sets it', async (t) => {
  const { url, requests } = await site(t, (request, response) => {
    if (request.url === '/robots.txt') return response.writeHead(404).end();
    if (!request.headers.accept?.startsWith('text/html')) return json(response);
    response.setHeader('content-type', 'text/html').end('<p id=7>');
  });
  const { records } = await take({ source: { url, parse: 'html', records: 'p' }, fields: { id: '@id' } });
  assert.deepEqual(records, [{ id: '7' }]);
  assert.deepEqual((await take({ source: { url, headers: { Accept: 'x/y' } } })).records, [{ id: 1 }]);
  assert.equal(requests.at(-1)?.headers.accept, 'x/y');
});

test('cookies are kept for the run, unless the definition turns them off', async (t) => {
  const { url, requests } = await site(t, {
    '/a': (_request, response) => {
      response.setHeader('set-cookie', [
        'session=1; HttpOnly',
        'old=; Max-Age=0',
        'theirs=1; Domain=example.com',
      ]);
      json(response);
    },
    '/b': [{ id: 2 }],
  });
  await take({ source: { url: [`${url}/a`, `${url}/b`], headers: { cookie: 'own=1' } } });
  assert.equal(requests[1]?.headers.cookie, 'own=1; session=1');
  await take({ source: { url: [`${url}/a`, `${url}/b`], cookies: false } });
  assert.equal(requests[3]?.headers.cookie, undefined);
});

test('the cookies sent to a host that sets ever more of them are bounded', async (t) => {
  const { url, requests } = await site(t, (request, response) => {
    const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('page'));
    const cookies = Array.from({ length: 40 }, (_, n) => `c${page}x${n}=${'v'.repeat(100)}`);
    response.setHeader('set-cookie', cookies);
    json(response, page > 5 ? '[]' : JSON.stringify([{ id: page }]));
  });
  await take({ source: { url, paginate: { type: 'page' } } });
  const cookie = requests.at(-1)?.headers.cookie ?? '';
  assert.ok(cookie.length > 3_000 && cookie.length < 4_300, `${cookie.length}`);
  assert.match(cookie, /^c1x0=v/);
});

test('robots.txt is respected for HTML, and for other formats on request', async (t) => {
  const robots =
    'User-agent: *\nDisallow: /private\n\nUser-agent: flowhook\nDisallow: /not-for-us\nCrawl-delay: 0.001\n';
  const { url, asked } = await site(t, {
    '/robots.txt': (_request, response) => response.setHeader('content-type', 'text/plain').end(robots),
    '/not-for-us': '<p id=1>',
    '/private': '<p id=2>',
    '/moved': (_request, response) => response.writeHead(302, { location: '/not-for-us' }).end(),
    '/not-for-us.json': [{ id: 3 }],
  });
  const page = (path: string, source = {}) =>
    take({ source: { url: `${url}${path}`, records: 'p', ...source }, fields: { id: '@id' } });
  const refused =
    /robots\.txt does not allow .*\/not-for-us \(line 5: Disallow: \/not-for-us\)\..*`robots: ignore`/;
  await assert.rejects(page('/not-for-us', { parse: 'html' }), refused);
  assert.deepEqual(asked, ['GET /robots.txt'], 'the page itself is not asked for');
  await assert.rejects(page('/not-for-us'), refused);
  await assert.rejects(page('/moved', { parse: 'html' }), refused);
  assert.deepEqual(
    (await page('/private')).records,
    [{ id: '2' }],
    'rules of its own name come before those for all',
  );
  assert.deepEqual((await page('/not-for-us', { robots: 'ignore' })).records, [{ id: '1' }]);
  assert.deepEqual((await take({ source: { url: `${url}/not-for-us.json` } })).records, [{ id: 3 }]);
  await assert.rejects(
    take({ source: { url: `${url}/not-for-us.json`, robots: 'respect' } }),
    /does not allow/,
  );

  const down = await site(t, (request, response) =>
    request.url === '/robots.txt'
      ? response.writeHead(500).end()
      : response.setHeader('content-type', 'text/html').end('<p>'),
  );
  await assert.rejects(
    take({ source: { url: down.url, records: 'p', parse: 'html' }, fields: { id: '.' } }),
    /robots\.txt cannot be read \(GET .* returned 500 .*\), so the site must not be read \(RFC 9309\)/,
  );
});

test('jobs that read the same host share its request limit', async (t) => {
  const waiting: (() => void)[] = [];
  let most = 0;
  let asked = 0;
  const { url } = await site(t, (_request, response) => {
    asked += 1;
    waiting.push(() => json(response, asked > 20 ? '[]' : `[{"id":${asked}}]`));
    most = Math.max(most, waiting.length);
    setImmediate(() => waiting.shift()?.());
  });
  const turns = createHostTurns().of('a', { bindsOthers: true });
  const source = { url, paginate: { type: 'page' }, perHost: 2 };
  await Promise.all(Array.from({ length: 5 }, () => take({ source }, { turns })));
  assert.ok(most <= 2, `${most} concurrent requests`);
  assert.ok(asked >= 20);
});

test('requests go through a proxy, to targets that the address guard allows', async (t) => {
  const asked: string[] = [];
  const proxy = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers['proxy-authorization']}`);
    json(response);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo;
  const { records } = await take({
    source: { url: 'http://people.example/list', proxy: `http://ada:pw@127.0.0.1:${port}` },
  });
  assert.deepEqual(records, [{ id: 1 }]);
  assert.deepEqual(asked, [`http://people.example/list Basic ${Buffer.from('ada:pw').toString('base64')}`]);
  await assert.rejects(
    take({ source: { url: 'http://people.example', proxy: 'http://10.0.0.1:3128' } }),
    /The proxy 10\.0\.0\.1:3128 may not be used/,
  );
  // The targets are checked too, as far as this machine can: literal addresses and names.
  for (const target of ['http://169.254.169.254/latest', 'http://[fd00:ec2::254]/', 'http://0x0a000001/']) {
    await assert.rejects(
      take({ source: { url: target, proxy: `http://127.0.0.1:${port}` } }),
      /The proxy may not connect to /,
      target,
    );
  }
  assert.equal(asked.length, 1);
});

test('a slow but steady response fails after `source.timeout`, and the error says so', async (t) => {
  const { url, asked } = await site(t, (_request, response) => {
    response.setHeader('content-type', 'application/json').write('[');
  });
  await assert.rejects(
    take({ source: { url, timeout: '50ms' } }),
    /was not complete within 0\.05 s \(`source\.timeout`\)$/,
  );
  const silent = await site(t, () => {});
  await assert.rejects(take({ source: { url: silent.url, timeout: '50ms' } }), /`source\.timeout`\)$/);
  assert.equal(asked.length + silent.asked.length, 2, 'not retried');
  assert.throws(() => definitionOf({ source: { type: 'http', url, timeout: 'soon' } }), /source\.timeout/);
});

test('a deeply nested page is flattened as in browsers, and the text of its fields is bounded', async (t) => {
  // Each text is 40 characters long, and each of the 510 elements includes the texts of its descendants.
  const deep = `<div>${'x'.repeat(40)}`.repeat(2_000);
  const { url } = await site(t, { '/deep': `<main>${deep}`, '/low': `<main>${'<i>'.repeat(2_000)}x` });
  const read = (path: string, from: object) =>
    take({ source: { url: `${url}${path}`, records: 'main' }, fields: { id: from } });
  await assert.rejects(read('/deep', { from: 'div', all: true }), /div matches more than 16 MiB of text/);
  const { records } = await read('/low', { from: 'i', all: true });
  assert.equal(records[0]?.id.length, 510, 'deeper elements are siblings of the last one');
  assert.equal((await read('/deep', { from: '.' })).records[0]?.id.length, 2_000 * 41 - 1);
});
