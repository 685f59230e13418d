/** Pagination, and the detail pages of records. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { site, take } from '../../../test/support/jobs/source-site.ts';

const ids = (records: { id: unknown }[]) => records.map(({ id }) => id);

test('a cursor is followed until there is none', async (t) => {
  const { url, asked } = await site(t, {
    '/c?limit=2': { items: [{ id: 1 }, { id: 2 }], meta: { next: 'b c' } },
    '/c?limit=2&cursor=b+c': { items: [{ id: 3 }], meta: { next: '' } },
  });
  const paginate = { type: 'cursor', from: '$.meta.next', param: 'cursor' };
  const { records } = await take({
    source: { url: `${url}/c`, query: { limit: 2 }, records: '$.items', paginate },
  });
  assert.deepEqual(ids(records), [1, 2, 3]);
  assert.equal(asked.length, 2);
});

test('a cursor may be in the last record, even if records are streamed', async (t) => {
  const { url, asked } = await site(t, {
    '/c': { data: [{ id: 1 }, { id: 2 }] },
    '/c?after=2': { data: [{ id: 3 }] },
    '/c?after=3': (_request, response) => response.writeHead(204).end(),
    '/r': [{ id: 1 }],
    '/r?after=1': [],
    '/n': (_request, response) =>
      response.setHeader('content-type', 'application/x-ndjson').end('{"id":1}\n'),
  });
  const cursor = (from: string) => ({ type: 'cursor', from, param: 'after' });
  const source = { url: `${url}/c`, records: '$.data' };
  const last = await take({ source: { ...source, paginate: cursor('$.data[-1:].id') } });
  assert.deepEqual(ids(last.records), [1, 2, 3]);
  const root = await take({ source: { url: `${url}/r`, paginate: cursor('$[-1].id') } });
  assert.deepEqual(ids(root.records), [1]);
  assert.deepEqual(
    asked.filter((one) => one.startsWith('GET /r')),
    ['GET /r', 'GET /r?after=1'],
  );
  await assert.rejects(
    take({ source: { url: `${url}/n`, paginate: cursor('$.next') } }),
    /The response is ndjson, which contains only records/,
  );
});

test('the cursor of a POST is sent in the body, at a nested path if necessary', async (t) => {
  const bodies: unknown[] = [];
  const { url } = await site(t, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { variables: { after?: string } };
    bodies.push(body);
    const last = body.variables.after === 'x';
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: { people: [{ id: last ? 2 : 1 }], end: last ? null : 'x' } }));
  });
  const { records } = await take({
    source: {
      url,
      body: { query: '{…}', variables: { first: 1 } },
      records: '$.data.people',
      paginate: { type: 'cursor', from: '$.data.end', param: 'variables.after' },
    },
  });
  assert.deepEqual(ids(records), [1, 2]);
  assert.deepEqual(bodies[1], { query: '{…}', variables: { first: 1, after: 'x' } });
});

test('numbered pages end with an empty page, a short one, a repeated one or 404', async (t) => {
  const page = (n: number, of: number[][]) => (of[n] ?? []).map((id) => ({ id }));
  const numbered = (of: number[][], otherwise: 'empty' | 'missing' | 'last') => (t: TestContext) =>
    site(t, (request, response) => {
      const query = new URL(request.url ?? '', 'http://x').searchParams;
      const n = Number(query.get('p') ?? query.get('offset')) / Number(query.get('limit') ?? 1);
      if (n >= of.length && otherwise === 'missing') return response.writeHead(404).end();
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(page(otherwise === 'last' ? Math.min(n, of.length - 1) : n, of)));
    });
  const paginate = { type: 'page', param: 'p', start: 0 };
  const cases: [
    site: (t: TestContext) => ReturnType<typeof site>,
    paginate: object,
    asked: number,
    said: RegExp,
  ][] = [
    [numbered([[1, 2], [3]], 'empty'), paginate, 3, /^$/],
    [numbered([[1, 2], [3]], 'empty'), { ...paginate, size: 2 }, 2, /^$/],
    [numbered([[1, 2], [3]], 'missing'), paginate, 3, /^$/],
    [
      numbered([[1, 2], [3]], 'last'),
      paginate,
      3,
      /the same records as the previous page: no further pages are read/,
    ],
    [numbered([[1, 2], [3]], 'empty'), { type: 'offset', limit: 2 }, 2, /^$/],
  ];
  for (const [make, how, count, sentence] of cases) {
    const { url, asked } = await make(t);
    const { records, said } = await take({ source: { url, paginate: how } });
    assert.deepEqual([...new Set(ids(records))], [1, 2, 3]);
    assert.equal(asked.length, count, asked.join());
    assert.match(said.join(), sentence);
  }
});

test('pages with their number in the URL are read until one is empty', async (t) => {
  const { url } = await site(t, {
    '/list/1/': '<p id=a>',
    '/list/2/': '<p id=b>',
    '/list/3/': '<i>none</i>',
  });
  const { records } = await take({
    source: { url: `${url}/list/$\{page}/`, records: 'p', paginate: { type: 'until_empty' } },
    fields: { id: '@id' },
  });
  assert.deepEqual(ids(records), ['a', 'b']);
});

test('links to the next page are followed in a header, in HTML and in JSON', async (t) => {
  const { url } = await site(t, {
    '/h': (_request, response) => {
      response.setHeader('link', '</h?page=9>; rel="last", </h?page=2>; rel="next prefetch"');
      response.setHeader('content-type', 'application/json').end('[{"id":1}]');
    },
    '/h?page=2': [{ id: 2 }],
    '/p': '<base href="/sub/"><p id=1><a class=next href="p2#top">Next</a>',
    '/sub/p2': '<p id=2>',
    '/j': { rows: [{ id: 1 }], next: '/j2' },
    '/j2': { rows: [{ id: 2 }], next: null },
  });
  const header = await take({ source: { url: `${url}/h`, paginate: { type: 'link_header' } } });
  assert.deepEqual(ids(header.records), [1, 2]);
  const page = await take({
    source: {
      url: `${url}/p`,
      parse: 'html',
      records: 'p',
      paginate: { type: 'next_link', from: 'a.next@href' },
    },
    fields: { id: '@id' },
  });
  assert.deepEqual(ids(page.records), ['1', '2']);
  const json = await take({
    source: { url: `${url}/j`, records: '$.rows', paginate: { type: 'next_link', from: '$.next' } },
  });
  assert.deepEqual(ids(json.records), [1, 2]);
});

test('a loop of links or cursors ends the reading with a warning', async (t) => {
  const { url, asked } = await site(t, {
    '/a': { rows: [{ id: 1 }], next: '/b', cursor: 'x' },
    '/a?cursor=x': { rows: [{ id: 2 }], cursor: 'x' },
    '/b': { rows: [{ id: 2 }], next: '/a' },
  });
  const links = await take({
    source: { url: `${url}/a`, records: '$.rows', paginate: { type: 'next_link', from: '$.next' } },
  });
  assert.deepEqual(ids(links.records), [1, 2]);
  assert.match(links.said.join(), /leads back to .*\/a: no further pages are read/);
  const cursors = await take({
    source: {
      url: `${url}/a`,
      records: '$.rows',
      paginate: { type: 'cursor', from: '$.cursor', param: 'cursor' },
    },
  });
  assert.deepEqual(ids(cursors.records), [1, 2]);
  assert.match(cursors.said.join(), /The cursor x was returned twice/);
  assert.equal(asked.length, 4);
});

test('endless pages end at `maxPages`, and fail without it', async (t) => {
  let n = 0;
  const { url } = await site(t, (_request, response) => {
    n += 1;
    response.setHeader('content-type', 'application/json').end(JSON.stringify([{ id: n }]));
  });
  const few = await take({ source: { url, paginate: { type: 'page', maxPages: 3 } } });
  assert.deepEqual(ids(few.records), [1, 2, 3]);
  assert.match(few.said.join(), /There are more pages, but `paginate\.maxPages` is 3/);
  await assert.rejects(
    take({ source: { url, paginate: { type: 'page' } } }, { deps: { mostPages: 20 } }),
    /has more than 20 pages/,
  );
});

test('several start URLs are read as one list', async (t) => {
  const { url } = await site(t, { '/a': [{ id: 1 }], '/b': [{ id: 2 }] });
  const { records } = await take({ source: { url: [`${url}/a`, `${url}/b`] } });
  assert.deepEqual(ids(records), [1, 2]);
});

test('detail pages add fields, concurrently and in order, with a warning about missing pages', async (t) => {
  let under = 0;
  let most = 0;
  const { url } = await site(t, (request, response) => {
    const path = request.url ?? '';
    if (path === '/robots.txt' || path === '/p/3') return response.writeHead(404).end();
    response.setHeader('content-type', 'text/html');
    if (path === '/') {
      return response.end(Array.from({ length: 6 }, (_, n) => `<li><a href=/p/${n}>${n}</a>`).join(''));
    }
    under += 1;
    most = Math.max(most, under);
    setImmediate(() => {
      under -= 1;
      response.end(`<h1>Person ${path.slice(3)}</h1><a href="tel:1">x</a>`);
    });
  });
  const { records, said } = await take({
    source: {
      url,
      records: 'li',
      perHost: 8,
      follow: {
        url: 'a@href',
        concurrency: 3,
        fields: { name: 'h1', phone: { from: 'a@href', replace: ['^tel:', ''] } },
      },
    },
    fields: { id: 'a' },
  });
  assert.deepEqual(
    records.map(({ id, name }) => [id, name]),
    ['0', '1', '2', '3', '4', '5'].map((id) => [id, id === '3' ? undefined : `Person ${id}`]),
  );
  assert.ok(most <= 3, `${most} concurrent requests`);
  assert.match(said.join('\n'), /The detail page .*\/p\/3 returned 404: its record gets no details/);
  assert.match(said.join('\n'), /The field `name` was found in 5 of 6 records/);
});

test('detail pages get the headers of the definition, unless they are on another host', async (t) => {
  const other = await site(t, { '/2': { mail: 'b@x' } });
  const { url, requests } = await site(t, {
    '/list': [
      { id: 1, url: '/1' },
      { id: 2, url: `${other.url}/2` },
    ],
    '/1': { mail: 'a@x' },
  });
  const { records } = await take(
    {
      source: {
        url: `${url}/list`,
        headers: { 'x-own': 'secret' },
        auth: { type: 'bearer', token: 'sesame' },
        follow: { url: '$.url', fields: { email: '$.mail' } },
      },
      fields: { id: '$.id' },
    },
    { named: [other.url] },
  );
  assert.deepEqual(records, [
    { id: 1, email: 'a@x' },
    { id: 2, email: 'b@x' },
  ]);
  assert.equal(requests[1]?.headers['x-own'], 'secret');
  assert.equal(requests[1]?.headers.authorization, 'Bearer sesame');
  assert.equal(other.requests[0]?.headers['x-own'], undefined);
  assert.equal(other.requests[0]?.headers.authorization, undefined);
});

test('links and redirects may lead to private addresses only on hosts in the definition', async (t) => {
  const inner = await site(t, { '/list': { items: [{ id: 'inner' }] }, '/admin': { secret: 'inner' } });
  const { url } = await site(t, {
    '/redirect': (_request, response) => response.writeHead(302, { location: `${inner.url}/list` }).end(),
    '/next': { items: [{ id: 'o' }], next: `${inner.url}/list` },
    '/follow': { items: [{ id: 1, url: `${inner.url}/admin` }] },
  });
  const ways = {
    redirect: {},
    next: { paginate: { type: 'next_link', from: '$.next' } },
    follow: { follow: { url: '$.url', parse: 'json', fields: { leaked: '$.secret' } } },
  };
  for (const [path, settings] of Object.entries(ways)) {
    await assert.rejects(
      take({
        source: { url: `${url}/${path}`, records: '$.items', ...settings },
        fields: { id: '$.id' },
      }),
      /failed: 127\.0\.0\.1 is not a public address\. Redirects and links/,
      path,
    );
  }
  assert.deepEqual(inner.asked, []);
  const both = { url: [`${inner.url}/list`, `${url}/redirect`], records: '$.items' };
  assert.equal((await take({ source: both, fields: { id: '$.id' } })).records.length, 2);
});
