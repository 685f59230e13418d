/** Text responses are compressed if the client accepts it, and do not change otherwise. */
import assert from 'node:assert/strict';
import { type IncomingMessage, request } from 'node:http';
import { after, test } from 'node:test';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { bodyOf } from '../support/records/reading.ts';
import { startService } from '../support/service.ts';

const service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
after(() => service.stop());

const DOCUMENTS = ['/openapi.json', '/openapi.yaml', '/docs'];
const LARGE = [...DOCUMENTS, '/metrics', '/v1/events/types', '/v1/workflows?recentJobs=20'];

async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(service.url + path, {
      method,
      headers: { 'x-api-key': service.key, ...headers },
    });
    sent.on('response', resolve).on('error', reject).end();
  });
  return { status: response.statusCode, headers: response.headers, body: await bodyOf(response) };
}

test('compresses lists, documents and metrics with the encoding that the client prefers', async () => {
  for (let n = 0; n < 12; n++) {
    assert.equal((await service.call('POST', '/v1/workflows/people/push', [{ id: n }])).status, 200);
  }
  for (const path of [...LARGE, '/v1/events?after=0', '/v1/jobs']) {
    const plain = await get(path);
    assert.equal(plain.headers['content-encoding'], undefined, path);
    assert.ok(plain.body.length > 1_024, `${path} ${plain.body.length}`);
    for (const [accepted, encoding, decode] of [
      ['gzip', 'gzip', gunzipSync],
      ['gzip, zstd', 'zstd', zstdDecompressSync],
      ['gzip;q=0.5, zstd;q=0', 'gzip', gunzipSync],
    ] as const) {
      const { headers, body } = await get(path, { 'accept-encoding': accepted });
      assert.equal(headers['content-encoding'], encoding, path);
      assert.match(String(headers.vary), /\baccept-encoding\b/, path);
      assert.equal(headers['content-type'], plain.headers['content-type'], path);
      assert.ok(body.length < plain.body.length / 2, `${path} ${body.length} of ${plain.body.length}`);
      const text = decode(body).toString();
      if (path !== '/metrics') assert.equal(text, plain.body.toString(), path);
    }
    assert.equal(
      (await get(path, { 'accept-encoding': 'identity' })).headers['content-encoding'],
      undefined,
      path,
    );
  }
});

test('does not compress small responses', async () => {
  for (const path of ['/livez', '/v1/me', '/v1/jobs/none', '/nowhere']) {
    const { headers, body } = await get(path, { 'accept-encoding': 'gzip, zstd' });
    assert.equal(headers['content-encoding'], undefined, path);
    JSON.parse(body.toString());
  }
});

test('HEAD has the headers of GET, compressed or not', async () => {
  for (const path of [...LARGE, '/v1/workflows/people']) {
    // Metrics change every second.
    if (path === '/metrics') continue;
    for (const accepted of ['identity', 'gzip']) {
      const asked = { 'accept-encoding': accepted };
      const [got, head] = [await get(path, asked), await get(path, asked, 'HEAD')];
      assert.equal(head.body.length, 0);
      const of = ({ date: _, 'x-request-id': __, ...headers }: typeof got.headers) => headers;
      assert.deepEqual(of(head.headers), of(got.headers), path);
    }
  }
});

test('each encoding has its own ETag, which revalidates', async () => {
  const { events } = JSON.parse((await get('/v1/events?after=0')).body.toString()) as {
    events: { id: string }[];
  };
  const event = `/v1/events/${events[0]?.id}`;
  for (const path of [...DOCUMENTS, event]) {
    const tags = new Set<string>();
    for (const accepted of ['identity', 'gzip', 'zstd']) {
      const asked = { 'accept-encoding': accepted };
      const first = await get(path, asked);
      const tag = String(first.headers.etag);
      tags.add(`${tag} ${first.headers['content-encoding'] ?? ''}`);
      const again = await get(path, { ...asked, 'if-none-match': tag });
      assert.deepEqual([again.status, again.headers.etag, again.body.length], [304, tag, 0], path);
      assert.equal(again.headers.vary, first.headers.vary, path);
    }
    assert.equal(tags.size, DOCUMENTS.includes(path) ? 3 : 1, path);
  }
});
