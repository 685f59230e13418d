/** Conditional requests: unchanged responses are not transferred again. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { site, take } from '../../../test/support/jobs/source-site.ts';

const LIST = '[{"id":1}]';
const json = (response: ServerResponse, text = LIST) =>
  response.setHeader('content-type', 'application/json').end(text);

test('unchanged responses are not transferred again, and a run without changes says so', async (t) => {
  let version = 1;
  const { url, asked, requests } = await site(t, (request, response) => {
    const etag = `"${request.url}${version}"`;
    response.setHeader('etag', etag).setHeader('last-modified', 'Fri, 20 Nov 2026 10:00:00 GMT');
    if (request.headers['if-none-match'] === etag) return response.writeHead(304).end();
    json(response, JSON.stringify([{ id: `${request.url}${version}` }]));
  });
  const settings = { source: { url: [`${url}/a`, `${url}/b`] } };
  const first = await take(settings);
  assert.equal(first.end.unchanged, false);
  const second = await take(settings, { state: first.end.state });
  assert.deepEqual([second.records, second.end.unchanged], [[], true]);
  assert.deepEqual(second.end.state, first.end.state);
  assert.equal(requests[2]?.headers['if-modified-since'], 'Fri, 20 Nov 2026 10:00:00 GMT');

  // Another definition reads other records from the same response.
  const other = await take(settings, { state: first.end.state, definitionHash: 'two' });
  assert.equal(other.records.length, 2);

  version = 2;
  const key = (path: string) => createHash('sha256').update(`${url}${path}`).digest('base64url');
  const half = {
    answers: { of: 'one', validators: { [key('/a')]: { etag: '"/a2"' }, [key('/b')]: { etag: '"/b1"' } } },
  };
  asked.length = 0;
  const third = await take(settings, { state: half });
  assert.deepEqual(
    third.records.map(({ id }) => id),
    ['/b2', '/a2'],
    'one that has changed is not alone',
  );
  assert.deepEqual(asked, ['GET /a', 'GET /b', 'GET /a']);
});

test('the stored validators are bounded and contain no URL', async (t) => {
  const { url } = await site(t, (request, response) => {
    response.setHeader('etag', `"${'e'.repeat(request.url === '/long' ? 1_100 : 900)}"`);
    json(response);
  });
  const urls = ['/long', ...Array.from({ length: 300 }, (_, n) => `/${n}?key=secret`)].map(
    (path) => url + path,
  );
  const { end } = await take({ source: { url: urls, perHost: 64 } });
  const kept = JSON.stringify(end.state);
  assert.ok(kept.length > 200_000 && kept.length < 300_000, `${kept.length}`);
  assert.ok(!kept.includes('secret'));
  const again = await take({ source: { url: urls, perHost: 64 } }, { state: end.state });
  assert.equal(again.records.length, 301);
});

test('a 304 to an unconditional request is an error', async (t) => {
  const { url } = await site(t, {
    '/never': (_request, response) => response.writeHead(304).end(),
    '/list?page=1': [{ id: 1 }],
    '/list?page=2': (_request, response) => response.writeHead(304).end(),
    '/people': [
      { id: 1, url: '/none' },
      { id: 2, url: '/never' },
    ],
    '/none': (_request, response) => response.writeHead(204).end(),
  });
  const sentence = /returned 304 Not Modified, although the request was not conditional/;
  await assert.rejects(take({ source: { url: `${url}/never`, parse: 'json' } }), sentence);
  const paged = { url: `${url}/list`, paginate: { type: 'page' } };
  await assert.rejects(take({ source: paged }), sentence);
  const headers = { 'if-modified-since': 'Fri, 20 Nov 2026 10:00:00 GMT' };
  await assert.rejects(
    take({ source: { ...paged, headers } }),
    /page=2 returned 304 Not Modified after the previous page/,
  );
  const follow = { url: '$.url', parse: 'json', fields: { x: '$.x' } };
  const detailed = { source: { url: `${url}/people`, follow }, fields: { id: '$.id' } };
  await assert.rejects(take(detailed), sentence);
  await assert.rejects(
    take({ ...detailed, source: { ...detailed.source, headers } }),
    /The detail page .*\/never returned 304 Not Modified\. Remove the conditional header/,
  );
});
