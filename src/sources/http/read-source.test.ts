/** A whole `http` source, from the pages of a site to records. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { definitionOf, site, take } from '../../../test/support/jobs/source-site.ts';
import { finish, TRIAL } from '../../../test/support/jobs/sources.ts';
import { parseAllowNetworks } from '../../net/address-policy.ts';
import { startRun } from '../start.ts';

test('a child process reads records from a JSON API', async (t) => {
  const { url, requests } = await site(t, {
    '/contacts': {
      data: { items: [{ contact_id: 7, first: 'Ada', last: 'Lovelace', email: 'ada@example.com' }] },
    },
  });
  const said: string[] = [];
  const pages: (number | undefined)[] = [];
  const run = await startRun({
    ...TRIAL,
    definition: definitionOf({
      source: {
        type: 'http',
        url: `${url}/contacts`,
        headers: { authorization: `Bearer $\{secret.CRM_TOKEN}` },
        records: '$.data.items',
      },
      fields: { id: '$.contact_id', name: '{{$.first}} {{$.last}}', email: '$.email', phone: '$.phone' },
    }),
    secrets: new Map([['CRM_TOKEN', 'sesame']]),
    fetchPolicy: parseAllowNetworks('loopback'),
    onLog: ({ text }) => said.push(text),
    onProgress: (news) => pages.push(news.pages),
  });
  t.after(() => run.kill());
  const { lines, end } = await finish(run);
  assert.deepEqual(end, { ok: true, state: '{}', unchanged: false });
  assert.deepEqual(lines, ['{"id":7,"name":"Ada Lovelace","email":"ada@example.com"}']);
  assert.equal(requests[0]?.headers.authorization, 'Bearer sesame');
  assert.match(requests[0]?.headers['user-agent'] ?? '', /^flowhook\/\d/);
  assert.match(said[0] ?? '', /^GET http:.*\/contacts 200, \d+ ms$/);
  assert.deepEqual(said.slice(1), ['The field `phone` was found in none of 1 records']);
  assert.deepEqual(pages, [1]);
});

test('the error about a refused address says how to allow it', async (t) => {
  const { url, asked } = await site(t, { '/': [] });
  const definition = definitionOf({ source: { type: 'http', url: `${url}/` } });
  const run = await startRun({ ...TRIAL, definition });
  t.after(() => run.kill());
  const { end } = await finish(run);
  assert.ok(!end.ok);
  assert.equal(end.reason, 'source');
  assert.match(end.error, /127\.0\.0\.1 is a loopback address .* FLOWHOOK_ALLOW_NETWORKS does not allow/);
  assert.deepEqual(asked, []);
});

test('an HTML list becomes records with absolute links', async (t) => {
  const { url } = await site(t, {
    '/people': `<table><tr class=p><td><a href="/p/1"> Ada <b>L.</b></a><td><a href="mailto:ada@x.org">mail</a>
                <tr class=p><td><a href="/p/2">Grace</a><td></table>`,
  });
  const { records, said } = await take({
    source: { url: `${url}/people`, parse: 'html', records: 'table > tbody > tr.p' },
    fields: {
      id: 'td > a@href',
      name: 'td:first-child',
      email: { from: "a[href^='mailto:']@href", replace: ['^mailto:', ''] },
    },
  });
  assert.deepEqual(records, [
    { id: `${url}/p/1`, name: 'Ada L.', email: 'ada@x.org' },
    { id: `${url}/p/2`, name: 'Grace' },
  ]);
  assert.deepEqual(said, ['warn The field `email` was found in 1 of 2 records']);
});

test('child processes that read the same host share its request limit', async (t) => {
  let under = 0;
  let most = 0;
  let asked = 0;
  const { url } = await site(t, (request, response) => {
    asked += 1;
    under += 1;
    most = Math.max(most, under);
    setImmediate(() => {
      under -= 1;
      const last = request.url?.endsWith('page=6');
      response.setHeader('content-type', 'application/json').end(last ? '[]' : `[{"id":${asked}}]`);
    });
  });
  const definition = definitionOf({ source: { type: 'http', url, perHost: 1, paginate: { type: 'page' } } });
  const fetchPolicy = parseAllowNetworks('loopback');
  const runs = await Promise.all([1, 2, 3].map(() => startRun({ ...TRIAL, definition, fetchPolicy })));
  t.after(() => runs.map((run) => run.kill()));
  for (const { lines, end } of await Promise.all(runs.map(finish))) {
    assert.equal(end.ok, true);
    assert.equal(lines.length, 5);
  }
  assert.deepEqual([asked, most], [18, 1]);
});

test('a secret in a URL is masked in every encoding', async (t) => {
  const { url, asked } = await site(t, {});
  const query = { token: `$\{secret.TOKEN}`, other: 'x' };
  const said: string[] = [];
  const run = await startRun({
    ...TRIAL,
    definition: definitionOf({ source: { type: 'http', url, query } }),
    secrets: new Map([['TOKEN', 'ab+c/d e==']]),
    fetchPolicy: parseAllowNetworks('loopback'),
    onLog: ({ text }) => said.push(text),
  });
  t.after(() => run.kill());
  const { end } = await finish(run);
  assert.match(asked[0] ?? '', /token=ab%2Bc%2Fd\+e%3D%3D&other=x/);
  assert.ok(!end.ok);
  assert.match(end.error, /GET .*\?token=\*\*\*&other=x returned 404 Not Found: Nothing here/);
  assert.match(said.join(), /token=\*\*\*&other=x 404/);
});

test('a missing secret is reported before any request', async (t) => {
  const { url, asked } = await site(t, {});
  const definition = definitionOf({
    source: { type: 'http', url, auth: { type: 'bearer', token: `$\{secret.NONE}` } },
  });
  await assert.rejects(startRun({ ...TRIAL, definition }), /The secret NONE is not set for team acme/);
  assert.deepEqual(asked, []);
});
