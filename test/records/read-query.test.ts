/** Reading a part of a version, or changes, over HTTP: formats, pages, `fields`, `since`, `q`, changes, versions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { readCsv } from '../support/records/csv.ts';
import {
  FEW,
  type Got,
  json,
  manyPeople,
  PEOPLE,
  type Row,
  rowsOf,
  startReading,
} from '../support/records/reading.ts';

const { publish, prune, get } = await startReading();

test('`format` and `Accept` select CSV and NDJSON', async () => {
  const cases: [path: string, accept: string, type: RegExp][] = [
    [FEW, 'text/csv', /^text\/csv/],
    [FEW, 'application/x-ndjson', /^application\/x-ndjson/],
    [FEW, 'text/csv;q=0.5, application/x-ndjson', /^application\/x-ndjson/],
    [FEW, 'text/csv, application/json;q=0', /^text\/csv/],
    [FEW, 'text/csv, application/json', /^application\/json/],
    [FEW, 'text/csv, */*;q=0.1', /^text\/csv/],
    [FEW, 'text/csv, application/json;q=0.1', /^text\/csv/],
    [FEW, 'text/csv;q=0.3, */*;q=0.5', /^application\/json/],
    [FEW, 'text/csv;q=0', /^application\/json/],
    [FEW, 'text/html', /^application\/json/],
    [`${FEW}?format=csv`, 'application/json', /^text\/csv/],
    [`${FEW}?format=json`, 'text/csv', /^application\/json/],
  ];
  for (const [path, accept, type] of cases) {
    assert.match(String((await get(path, { accept })).headers['content-type']), type, accept);
  }
});

test('every format contains the same records', async () => {
  const rows: Row[] = [
    { id: '1', name: 'Ada, "the first"', tags: ['a', { b: null }], note: 'two\r\nlines' },
    { id: '2', name: '=1+1', note: '-5', plus: '+4912', at: '@x', tab: '\tx', minus: '-x' },
    { id: '3', empty: '', big: 12_345, no: false, nothing: null, euro: '€ ü 😀' },
  ];
  await publish(rows, 'few');
  assert.equal((await get(FEW)).body.toString(), json(rows));
  const lines = (await get(`${FEW}?format=ndjson`)).body.toString();
  assert.equal(lines, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const csv = await get(`${FEW}?format=csv`);
  assert.match(String(csv.headers['content-disposition']), /^attachment; filename="few-v\d+\.csv"$/);
  assert.deepEqual(readCsv(csv.body.toString()), [
    ['id', 'name', 'tags', 'note', 'plus', 'at', 'tab', 'minus', 'empty', 'big', 'no', 'nothing', 'euro'],
    ['1', 'Ada, "the first"', '["a",{"b":null}]', 'two\r\nlines', '', '', '', '', '', '', '', '', ''],
    ['2', "'=1+1", '', '-5', '+4912', "'@x", "'\tx", "'-x", '', '', '', '', ''],
    ['3', '', '', '', '', '', '', '', '', '12345', 'false', '', '€ ü 😀'],
  ]);
  await publish(manyPeople(4_000), 'people');
  const large = await get(`${PEOPLE}?format=csv`);
  assert.equal(readCsv(large.body.toString()).length, 4_001);
  assert.equal((await get(`${PEOPLE}?format=ndjson`)).body.toString().split('\n').length, 4_001);
});

test('pages with a cursor stay in their version, in every format', async () => {
  await publish(manyPeople(7, 'old', 'p'), 'few');
  const { headers } = await get(FEW);
  const seen: Row[] = [];
  let path: string | undefined = `${FEW}?limit=3&unknown=%ZZ"<>`;
  for (let page = 0; path !== undefined; page++) {
    const got: Got = await get(path);
    assert.equal(got.headers.etag, headers.etag);
    seen.push(...rowsOf(got));
    path = /^<([^>]+)>; rel="next"$/.exec(String(got.headers.link))?.[1];
    if (page === 0) await publish(manyPeople(9, 'new', 'p'), 'few');
  }
  assert.deepEqual(seen, manyPeople(7, 'old', 'p'));
  const newest = await get(`${FEW}?limit=9`);
  assert.deepEqual(rowsOf(newest), manyPeople(9, 'new', 'p'));
  assert.equal(newest.headers.link, undefined);
  const csv = await get(`${FEW}?limit=2&format=csv`, { 'accept-encoding': 'gzip' });
  assert.equal(gunzipSync(csv.body).toString(), 'id,name,note\r\np0,Person 0,new\r\np1,Person 1,new\r\n');

  const next = /^<([^>]+)>/.exec(String((await get(`${FEW}?limit=2`)).headers.link))?.[1] as string;
  await publish(manyPeople(2, 'newer', 'p'), 'few');
  await prune('few');
  const gone = await get(next);
  assert.equal(gone.status, 404);
  assert.equal(gone.headers['x-error-code'], 'version_not_found');
});

test('a page of records that are too large for one response ends early, and its link leads to the rest', async () => {
  const rows = manyPeople(30, 'x'.repeat(1_000_000), 'large-');
  await publish(rows, 'few');
  const first = await get(`${FEW}?limit=30`);
  const next = /^<([^>]+)>/.exec(String(first.headers.link))?.[1] as string;
  const count = rowsOf(first).length;
  assert.ok(count > 0 && count < 30, `${count}`);
  assert.deepEqual(rowsOf(await get(next))[0], rows[count]);
  assert.ok((await get(FEW)).body.equals(Buffer.from(json(rows))));
});

test('`fields`, `version`, `since` and `q` select records and fields', async () => {
  await publish(
    [
      { id: '1', name: 'Ada', city: 'London' },
      { id: '2', name: 'Grace', city: 'say "hi"' },
    ],
    'few',
  );
  const version = Number((await get(FEW)).headers['x-data-version']);
  const changed = { id: '2', name: 'GRACE', city: 'Arlington' };
  const added = { id: '3', name: 'Edith', city: 'New York' };
  await publish([{ id: '1', name: 'Ada', city: 'London' }, changed, added], 'few');
  const ask = async (query: string) => rowsOf(await get(`${FEW}?${query}`));
  assert.deepEqual(await ask('fields=city,none'), [
    { id: '1', city: 'London' },
    { id: '2', city: 'Arlington' },
    { id: '3', city: 'New York' },
  ]);
  assert.deepEqual((await ask(`version=${version}`))[1], { id: '2', name: 'Grace', city: 'say "hi"' });
  assert.deepEqual(await ask(`since=${version}`), [changed, added]);
  assert.deepEqual(await ask(`since=${version}&fields=name`), [
    { id: '2', name: 'GRACE' },
    { id: '3', name: 'Edith' },
  ]);
  assert.deepEqual(await ask(`since=${version + 1}`), []);
  assert.equal((await ask('since=0')).length, 3);
  assert.deepEqual(await ask('q=grace'), [changed]);
  assert.deepEqual(await ask(`version=${version}&q=${encodeURIComponent('"HI"')}&fields=name`), [
    { id: '2', name: 'Grace' },
  ]);
  assert.deepEqual(await ask('q=nobody'), []);
  const first = await get(`${FEW}?since=${version}&limit=1`);
  assert.deepEqual(rowsOf(first), [changed]);
  const next = /^<([^>]+)>/.exec(String(first.headers.link))?.[1] as string;
  assert.deepEqual(rowsOf(await get(next)), [added]);
  for (const query of [`version=${version + 9}`, `since=${version + 9}`]) {
    assert.equal((await get(`${FEW}?${query}`)).status, 404, query);
  }
});

test('a known parameter with an invalid value is rejected, an unknown one is ignored', async () => {
  const bad = [
    ...['limit=0', 'limit=10001', 'limit=x', 'limit=', 'limit=1&limit=2', 'limit=1.5', 'limit=-1'],
    ...['format=xml', 'format=', 'version=x', 'version=-1', 'version=%ZZ', 'since=x', 'since=1&q=a'],
    ...['cursor=x', 'cursor=', 'cursor=W10', 'cursor=WzEsMl0&since=0', 'cursor=WzEsMl0&version=2'],
    ...['fields=', 'fields=a,,b', 'q=', `q=${'x'.repeat(201)}`, 'q=%00'],
  ];
  for (const query of bad) {
    const got = await get(`${FEW}?${query}`);
    assert.equal(got.status, 400, query);
    assert.deepEqual(Object.keys(JSON.parse(got.body.toString())), ['error']);
  }
  for (const query of ['Limit=x', 'page=x', 'sort=%ZZ', 'until=x']) {
    assert.equal((await get(`${FEW}?${query}`)).status, 200, query);
  }
});

test('lists the changes between two versions field by field', async () => {
  await publish(
    [
      { id: '1', name: 'Ada' },
      { id: '2', name: 'Grace', born: 1906 },
    ],
    'few',
  );
  const since = Number((await get(FEW)).headers['x-data-version']);
  await publish([{ id: '2', name: 'Grace H.', rank: 'Admiral' }, { id: '3' }], 'few');
  const path = `/v1/workflows/few/changes?since=${since}`;
  const expected = [
    {
      type: 'changed',
      id: '2',
      version: since + 1,
      fields: [
        { key: 'name', value: 'Grace H.', previousValue: 'Grace' },
        { key: 'born', previousValue: 1906 },
        { key: 'rank', value: 'Admiral' },
      ],
    },
    { type: 'added', id: '3', version: since + 1, record: { id: '3' } },
    {
      type: 'removed',
      id: '1',
      version: since + 1,
      fields: [
        { key: 'id', previousValue: '1' },
        { key: 'name', previousValue: 'Ada' },
      ],
    },
  ];
  const got = await get(path);
  assert.deepEqual(rowsOf(got), expected);
  assert.equal(got.headers['x-data-version'], String(since + 1));
  const lines = (await get(path, { accept: 'application/x-ndjson' })).body.toString();
  assert.equal(lines, expected.map((one) => `${JSON.stringify(one)}\n`).join(''));
  assert.deepEqual(rowsOf(await get(`${path}&until=${since}`)), []);
  assert.equal((await get(path, { 'if-none-match': String(got.headers.etag) })).status, 304);
  for (const query of [
    '',
    '?since=x',
    '?since=1&format=xml',
    '?since=2026-13-01',
    '?since=0&type=gone',
    '?since=0&field=',
    `?since=${since}&until=${since - 1}`,
  ]) {
    assert.equal((await get(`/v1/workflows/few/changes${query}`)).status, 400, query);
  }
  assert.equal((await get(`/v1/workflows/few/changes?since=${since + 9}`)).status, 404);
  assert.equal((await get('/v1/workflows/none/changes?since=0')).status, 404);

  await prune('few');
  const pruned = await get(path);
  assert.equal(pruned.status, 410);
  assert.match(
    pruned.body.toString(),
    /the oldest one that is stored is \d+, published at 20.*read all records again/,
  );
  assert.equal(rowsOf(await get('/v1/workflows/few/changes?since=0')).length, 2);
});

test('lists the versions that can be read, newest first', async () => {
  await publish([{ id: '1', name: 'a' }], 'few');
  await publish([{ id: '1', name: 'b' }], 'few');
  const path = '/v1/workflows/few/versions';
  const list = async (from: string) => {
    const got = await get(from);
    return { ...got, versions: JSON.parse(got.body.toString()).versions as Row[] };
  };
  const { versions } = await list(path);
  const newest = Number((await get(FEW)).headers['x-data-version']);
  assert.deepEqual(
    versions.slice(0, 2).map(({ number }) => number),
    [newest, newest - 1],
  );
  assert.deepEqual(versions[0]?.records, { total: 1, added: 0, changed: 1, removed: 0 });
  assert.match(String(versions[0]?.publishedAt), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  const first = await list(`${path}?limit=1`);
  const next = /^<([^>]+)>; rel="next"$/.exec(String(first.headers.link))?.[1] as string;
  assert.deepEqual([...first.versions, ...(await list(next)).versions], versions.slice(0, 2));
  assert.equal((await get(`${path}?limit=0`)).status, 400);
  assert.equal((await get('/v1/workflows/none/versions')).status, 404);
});
