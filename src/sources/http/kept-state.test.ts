/** The state that one run stores for the next, and the placeholders in requests that use it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { site, take } from '../../../test/support/jobs/source-site.ts';

const SINCE = `$\{state.since}`;

test('the greatest value of a run is where the next run starts', async (t) => {
  const { url, asked } = await site(t, (request, response) => {
    const since = new URL(request.url ?? '', 'http://x').searchParams.get('since');
    const all = [
      { id: 1, at: '2026-01-02T00:00:00Z' },
      { id: 2, at: '2026-01-02T03:00:00+02:00' },
    ];
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify(all.filter(({ at }) => since === null || Date.parse(at) > Date.parse(since))),
    );
  });
  const settings = {
    mode: 'upsert',
    source: { url, query: { since: SINCE }, state: { since: { from: '$.at', take: 'max' } } },
  };
  const first = await take(settings);
  assert.equal(asked[0], 'GET /', 'a parameter without a value is left out');
  assert.deepEqual(first.end.state, { values: { since: '2026-01-02T03:00:00+02:00' } });
  const second = await take(settings, { state: first.end.state });
  assert.equal(asked[1], 'GET /?since=2026-01-02T03%3A00%3A00%2B02%3A00');
  assert.deepEqual([second.records, second.end.state], [[], first.end.state]);
});

test('a state takes the minimum, first or last value or the start of the run, and defaults to `initial`', async (t) => {
  const { url, requests, asked } = await site(t, { '/p': [{ n: 10 }, { n: 9 }, { n: 11 }] });
  const { end } = await take(
    {
      mode: 'upsert',
      source: {
        url: `${url}/p?from=$\{state.from}`,
        headers: { 'x-from': `after $\{state.from}` },
        state: {
          from: { take: 'start', initial: '1970-01-01T00:00:00+00:00' },
          min: { from: 'n', take: 'min' },
          max: { from: 'n' },
          first: { from: 'n', take: 'first' },
          last: { from: 'n', take: 'last' },
        },
      },
    },
    { deps: { now: () => Date.UTC(2026, 0, 1) } },
  );
  assert.equal(asked[0], 'GET /p?from=1970-01-01T00%3A00%3A00%2B00%3A00');
  assert.equal(requests[0]?.headers['x-from'], 'after 1970-01-01T00:00:00+00:00');
  assert.deepEqual((end.state as { values: object }).values, {
    from: '2026-01-01T00:00:00.000Z',
    min: '9',
    max: '11',
    first: '10',
    last: '11',
  });
});

test('a cursor beyond the digits of a double is compared and stored exactly', async (t) => {
  const ids = ['12345678901234567891', '12345678901234567893', '12345678901234567892'];
  const { url } = await site(t, (_, response) => {
    response.setHeader('content-type', 'application/json').end(`[${ids.map((id) => `{"id":${id}}`)}]`);
  });
  const { end } = await take({ mode: 'upsert', source: { url, state: { since: { from: 'id' } } } });
  assert.deepEqual(end.state, { values: { since: '12345678901234567893' } });
});

test('a value of another type than before is skipped with a warning', async (t) => {
  const { url } = await site(t, { '/p': [{ n: 10 }, { n: 'zzz' }, { n: 11 }, { n: '2026-01-01' }] });
  const settings = {
    source: { url: `${url}/p`, state: { since: { from: 'n', initial: 'never' } } },
    mode: 'upsert',
  };
  const { end, said } = await take(settings);
  assert.deepEqual((end.state as { values: object }).values, { since: '11' });
  assert.match(
    said.join('\n'),
    /The state `since` ignored 2 values, such as "zzz", because their type differs/,
  );
  const next = await take(settings, { state: { values: { since: '2025-12-31' } } });
  assert.deepEqual((next.end.state as { values: object }).values, { since: '2026-01-01' });
});

test('a state value cannot change the URL or the body around its placeholder', async (t) => {
  const bodies: string[] = [];
  const { url, asked } = await site(t, async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    bodies.push(body);
    response.setHeader('content-type', 'application/json').end('[{"id":"\\ud800"}]');
  });
  const state = { since: { from: 'id', take: 'last' } };
  const of = (since: string) => ({ state: { values: { since } } });
  const inPath = { mode: 'upsert', source: { url: `${url}/a/$\{state.since}/p`, state } };
  for (const step of ['..', '.'])
    await assert.rejects(
      take(inPath, of(step)),
      /the path of the URL .* contains `\.` or `\.\.` and leads elsewhere/,
    );
  assert.deepEqual(asked, []);
  const { end } = await take(inPath, of('a/../b?c'));
  assert.deepEqual(asked, ['GET /a/a%2F..%2Fb%3Fc/p']);
  assert.deepEqual((end.state as { values: object }).values, { since: '\ufffd' });
  await take(inPath, of('\ud800'));
  assert.equal(asked[1], 'GET /a/%EF%BF%BD/p');

  const body = JSON.stringify({ since: `$\{state.since}` });
  await take({ mode: 'upsert', source: { url, state, body } }, of('","admin":true,"x":"'));
  assert.deepEqual(JSON.parse(bodies.at(-1) ?? ''), { since: '","admin":true,"x":"' });
});
