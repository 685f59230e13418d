/** What one run leaves for the next, and how requests are filled with it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { site, take } from './trial-site.ts';

const SINCE = `$\{state.since}`;

test('the greatest value of a run is what the next one asks from', async (t) => {
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

test('least, first, last, the beginning of the run, and what holds before the first run', async (t) => {
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
