/** Whole reads over HTTP: cached bodies, conditional and partial requests, encodings. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { FEW, type Got, json, manyPeople, PEOPLE, rowsOf, startReading } from '../support/records/reading.ts';

const { publish, get, untilKept, openFiles } = await startReading();

test('the plain response is the same from the database and from a file', async () => {
  const rows = manyPeople(4_000);
  await publish(rows, 'people');
  const first = await get(PEOPLE);
  assert.equal(first.status, 200);
  assert.equal(first.body.toString(), json(rows));
  assert.equal(first.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(first.headers['content-encoding'], undefined);
  assert.equal(await untilKept(PEOPLE), first.body.length);
  const again = await get(PEOPLE);
  assert.ok(again.body.equals(first.body));
  assert.equal(again.headers['content-length'], String(first.body.length));
  for (const { headers } of [first, again]) {
    assert.equal(headers['x-total-count'], '4000');
    assert.match(String(headers.etag), /^"\d+\.0-json-identity"$/);
    assert.equal(headers['x-data-version'], String(headers.etag).slice(1).split('.')[0]);
    assert.equal(headers.vary, 'x-api-key, accept, accept-encoding');
    assert.equal(headers['cache-control'], 'private, no-cache');
  }
});

test('before the first run, version 0 is an empty array', async () => {
  const got = await get('/v1/workflows/quiet/data');
  assert.equal(got.body.toString(), '[]');
  assert.equal(got.headers.etag, '"0.0-json-identity"');
  assert.equal((await get('/v1/workflows/quiet/data?format=ndjson')).body.toString(), '');
  assert.equal((await get('/v1/workflows/quiet/data?format=csv')).body.toString(), 'id\r\n');
  assert.deepEqual(rowsOf(await get('/v1/workflows/quiet/changes?since=0')), []);
});

test('a client that has the version gets 304 and no body', async () => {
  await publish([{ id: '1' }], 'few');
  const { headers } = await get(FEW);
  const tag = String(headers.etag);
  for (const same of [tag, `W/${tag}`, `"other", W/${tag} , "more"`, '*']) {
    for (const method of ['GET', 'HEAD']) {
      const got = await get(FEW, { 'if-none-match': same }, { method });
      assert.equal(got.status, 304, same);
      assert.equal(got.body.length, 0);
      assert.equal(got.headers.etag, tag);
    }
  }
  for (const other of ['"other"', tag.slice(1, -1), tag.replace('identity', 'gzip')]) {
    assert.equal((await get(FEW, { 'if-none-match': other })).status, 200, other);
  }
  await publish([{ id: '1' }, { id: '2' }], 'few');
  assert.equal((await get(FEW, { 'if-none-match': tag })).status, 200);
});

test('HEAD has the headers of GET', async () => {
  const plain = ({ headers }: Got) => {
    const { date, 'x-request-id': _, 'content-length': __, 'transfer-encoding': ___, ...rest } = headers;
    return rest;
  };
  for (const path of [FEW, `${FEW}?format=csv`, `${FEW}?limit=1`, `${FEW}?since=0`]) {
    const [head, got] = [await get(path, {}, { method: 'HEAD' }), await get(path)];
    assert.deepEqual(plain(head), plain(got), path);
    assert.equal(head.body.length, 0);
  }
});

test('a cached body can be requested in ranges', async () => {
  const { body, headers } = await get(PEOPLE);
  const size = body.length;
  const tag = String(headers.etag);
  await untilKept(PEOPLE);
  const parts: [range: string, start: number, end: number][] = [
    ['bytes=0-9', 0, 10],
    ['bytes=10-', 10, size],
    ['bytes=-7', size - 7, size],
    [`bytes=${size - 1}-${size + 100}`, size - 1, size],
    [`bytes=-${size + 5}`, 0, size],
  ];
  for (const [range, start, end] of parts) {
    const got = await get(PEOPLE, { range, 'if-range': tag });
    assert.equal(got.status, 206, range);
    assert.equal(got.headers['content-range'], `bytes ${start}-${end - 1}/${size}`);
    assert.equal(got.headers['content-length'], String(end - start));
    assert.ok(got.body.equals(body.subarray(start, end)), range);
  }
  const whole = ['bytes=0-1,5-6', 'bytes=x-', 'lines=0-1', 'bytes=-', 'bytes=9-2'];
  for (const range of whole) assert.equal((await get(PEOPLE, { range })).status, 200, range);
  assert.equal((await get(PEOPLE, { range: 'bytes=0-9', 'if-range': '"other"' })).status, 200);
  for (const range of [`bytes=${size}-`, 'bytes=-0']) {
    const got = await get(PEOPLE, { range });
    assert.equal(got.status, 416, range);
    assert.equal(got.headers['content-range'], `bytes */${size}`);
    assert.deepEqual(Object.keys(JSON.parse(got.body.toString())), ['error']);
  }
  assert.deepEqual(await openFiles(), []);
});

test('the encoding that the client prefers is sent, with and without a cached file', async () => {
  const { body } = await get(PEOPLE);
  const decoders = { gzip: gunzipSync, zstd: zstdDecompressSync };
  const cases: [accepted: string, encoding: string | undefined][] = [
    ['gzip', 'gzip'],
    ['gzip, deflate, br, zstd', 'zstd'],
    ['gzip;q=1.0, zstd;q=0.5', 'gzip'],
    ['identity, gzip;q=0.1', undefined],
    ['gzip;q=0', undefined],
    ['br', undefined],
    ['*', undefined],
  ];
  for (const [accepted, encoding] of cases) {
    for (const time of ['first', 'again']) {
      const got = await get(PEOPLE, { 'accept-encoding': accepted });
      assert.equal(got.headers['content-encoding'], encoding, `${accepted}, ${time}`);
      const decoded =
        encoding === undefined ? got.body : decoders[encoding as keyof typeof decoders](got.body);
      assert.ok(decoded.equals(body), `${accepted}, ${time}`);
      await untilKept(PEOPLE, { 'accept-encoding': accepted });
    }
  }
});

test('CSV that is much larger than its records is cached in a file, not in memory', async () => {
  const rows = Array.from({ length: 2_000 }, (_, n) => ({ id: String(n), [`field${n % 500}`]: n }));
  await publish(rows, 'people');
  const { body, headers } = await get(`${PEOPLE}?format=csv`);
  assert.ok(body.length > 1_000_000 && json(rows).length < 100_000);
  assert.equal(headers['content-length'], undefined);
  assert.equal(await untilKept(`${PEOPLE}?format=csv`), body.length);
  assert.ok((await get(`${PEOPLE}?format=csv`)).body.equals(body));
});
