/** Reading through the front door: representations, conditional and partial requests, formats, pages, changes. */
import assert from 'node:assert/strict';
import { readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { readCsv } from './support/csv.ts';
import { startService, type TestService } from './support/service.ts';

const WORKFLOWS = {
  'default/people.yaml': 'source: { type: command, command: [cat, people.ndjson] }\n',
  'default/few.yaml': 'source: { type: command, command: [cat, few.ndjson] }\n',
  'default/quiet.yaml': 'source: { type: command, command: [cat, quiet.ndjson] }\n',
};
const PEOPLE = '/v1/workflows/people/data';
const FEW = '/v1/workflows/few/data';

type Row = Record<string, unknown>;
interface Got {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

const agent = new Agent({ keepAlive: true });
const service = await startService({ workflows: WORKFLOWS });
after(async () => {
  agent.destroy();
  await service.stop();
});

const manyPeople = (count: number, note = 'x'.repeat(100), prefix = ''): Row[] =>
  Array.from({ length: count }, (_, n) => ({ id: `${prefix}${n}`, name: `Person ${n}`, note }));
const json = (rows: readonly Row[]) => JSON.stringify(rows);

/** Lets a workflow publish exactly these records. */
async function publish(rows: readonly Row[], workflowId: string, at: TestService = service): Promise<void> {
  const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  await writeFile(join(at.directory, 'workflows/default', `${workflowId}.ndjson`), text);
  const queued = await at.call('POST', `/v1/workflows/${workflowId}/queue`);
  assert.equal(queued.status, 200);
  const id = queued.headers.get('x-job-id') ?? '';
  const job = await new Promise<{ state: string; error: string | null }>((resolve) => {
    const check = async () => {
      const found = await at.store.jobs.get({ teamId: at.team.id, id });
      if (found === undefined || !/^(finished|failed|canceled)$/.test(found.state)) return;
      stop();
      resolve(found);
    };
    const stop = at.store.watch(() => void check());
    void check();
  });
  assert.equal(job.state, 'finished', job.error ?? '');
}

async function prune(workflowId: string, at: TestService = service): Promise<void> {
  const place = { teamId: at.team.id, workflowId };
  const retention = { keepVersions: 1, keepMs: 0, graceMs: 0, limit: 500 };
  while (!(await at.store.records.prune({ ...place, ...retention })).done);
}

function open(
  path: string,
  headers: Record<string, string> = {},
  options: { method?: string; at?: TestService } = {},
): Promise<IncomingMessage> {
  const { method = 'GET', at = service } = options;
  return new Promise((resolve, reject) => {
    const sent = request(at.url + path, { method, headers: { 'x-api-key': at.key, ...headers }, agent });
    sent.on('response', resolve).on('error', reject).end();
  });
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function get(...asked: Parameters<typeof open>): Promise<Got> {
  const response = await open(...asked);
  const body = await bodyOf(response);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

const rowsOf = ({ body }: Got) => JSON.parse(body.toString()) as Row[];

/** Asks until the body is kept as a file: it is, soon after its first reader has it. */
async function untilKept(path: string, headers = {}, at = service): Promise<number> {
  for (;;) {
    const head = await get(path, headers, { method: 'HEAD', at });
    const length = head.headers['content-length'];
    if (length !== undefined) return Number(length);
  }
}

const kept = (at: TestService = service) =>
  readdir(join(at.directory, 'data/representations')).catch(() => [] as string[]);

/** Files below the cache's directory that this process holds open. */
async function openFiles(): Promise<string[]> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(join('/proc/self/fd', fd)).catch(() => '')),
  );
  return links.filter((link) => link.includes('/representations/'));
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(setImmediate);
}

test('the plain call is what it always was, whether it is the first or comes from a file', async () => {
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
    assert.equal(headers.vary, 'accept, accept-encoding');
    assert.equal(headers['cache-control'], 'private, no-cache');
  }
});

test('before the first run there is version 0, an empty array', async () => {
  const got = await get('/v1/workflows/quiet/data');
  assert.equal(got.body.toString(), '[]');
  assert.equal(got.headers.etag, '"0.0-json-identity"');
  assert.equal((await get('/v1/workflows/quiet/data?format=ndjson')).body.toString(), '');
  assert.equal((await get('/v1/workflows/quiet/data?format=csv')).body.toString(), 'id\r\n');
  assert.deepEqual(rowsOf(await get('/v1/workflows/quiet/changes?since=0')), []);
});

test('who has the version already gets 304 and no body', async () => {
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

test('a kept body is served in parts', async () => {
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

test('the encoding that the client likes best is sent, first and again', async () => {
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

test('CSV and NDJSON come when `format` or only `Accept` names them', async () => {
  const cases: [path: string, accept: string, type: RegExp][] = [
    [FEW, 'text/csv', /^text\/csv/],
    [FEW, 'application/x-ndjson', /^application\/x-ndjson/],
    [FEW, 'text/csv;q=0.5, application/x-ndjson', /^application\/x-ndjson/],
    [FEW, 'text/csv, application/json;q=0', /^text\/csv/],
    [FEW, 'text/csv, application/json', /^application\/json/],
    [FEW, 'text/csv, */*;q=0.1', /^application\/json/],
    [FEW, 'text/csv;q=0', /^application\/json/],
    [FEW, 'text/html', /^application\/json/],
    [`${FEW}?format=csv`, 'application/json', /^text\/csv/],
    [`${FEW}?format=json`, 'text/csv', /^application\/json/],
  ];
  for (const [path, accept, type] of cases) {
    assert.match(String((await get(path, { accept })).headers['content-type']), type, accept);
  }
});

test('every format holds the same records', async () => {
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

test('a page of records that are too large for one answer ends early, and its link leads to the rest', async () => {
  const rows = manyPeople(30, 'x'.repeat(1_000_000), 'large-');
  await publish(rows, 'few');
  const first = await get(`${FEW}?limit=30`);
  const next = /^<([^>]+)>/.exec(String(first.headers.link))?.[1] as string;
  const count = rowsOf(first).length;
  assert.ok(count > 0 && count < 30, `${count}`);
  assert.deepEqual(rowsOf(await get(next))[0], rows[count]);
  assert.ok((await get(FEW)).body.equals(Buffer.from(json(rows))));
});

test('`fields`, `version`, `since` and `q` choose', async () => {
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

test('a known parameter with a bad value is refused, any other is ignored', async () => {
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

test('the changes between two versions are told field by field', async () => {
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
  for (const query of ['', '?since=x', '?since=1&format=csv', `?since=${since}&until=${since - 1}`]) {
    assert.equal((await get(`/v1/workflows/few/changes${query}`)).status, 400, query);
  }
  assert.equal((await get(`/v1/workflows/few/changes?since=${since + 9}`)).status, 404);
  assert.equal((await get('/v1/workflows/none/changes?since=0')).status, 404);

  await prune('few');
  const pruned = await get(path);
  assert.equal(pruned.status, 410);
  assert.match(pruned.body.toString(), /read everything again/);
  assert.equal(rowsOf(await get('/v1/workflows/few/changes?since=0')).length, 2);
});

test('the versions that can be read are listed, newest first', async () => {
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

/** More than what the buffers of two sockets take. */
const HEAVY = manyPeople(4_000, 'x'.repeat(5_000));

test('a reader that stalls keeps its version while newer ones are published and pruned', async () => {
  await publish(HEAVY, 'people');
  const stalled = await open(PEOPLE);
  const late = await untilKept(PEOPLE);
  await publish(manyPeople(3), 'people');
  await prune('people');
  const body = await bodyOf(stalled);
  assert.equal(body.length, late);
  assert.ok(body.equals(Buffer.from(json(HEAVY))));
  assert.equal((await get(PEOPLE)).body.toString(), json(manyPeople(3)));
});

test('readers that go leave nothing open, and do not take the file with them', async () => {
  await publish(HEAVY, 'people');
  const leaving = await Promise.all([open(PEOPLE), open(PEOPLE), open(PEOPLE)]);
  for (const response of leaving) response.destroy();
  assert.equal(await untilKept(PEOPLE), json(HEAVY).length);
  const again = await open(PEOPLE);
  again.destroy();
  await until(async () => (await openFiles()).length === 0);
  assert.ok((await get(PEOPLE)).body.equals(Buffer.from(json(HEAVY))));
});

test('the directory of the files may be deleted at any time', async () => {
  const directory = join(service.directory, 'data/representations');
  const expected = Buffer.from(json(HEAVY));
  await get(PEOPLE);
  await untilKept(PEOPLE);
  const fromFile = await open(PEOPLE);
  await rm(directory, { recursive: true, maxRetries: 10 });
  assert.ok((await bodyOf(fromFile)).equals(expected));
  const beingMade = await open(PEOPLE);
  await rm(directory, { recursive: true, force: true, maxRetries: 10 });
  assert.ok((await bodyOf(beingMade)).equals(expected));
  assert.ok((await get(PEOPLE)).body.equals(expected));
  await untilKept(PEOPLE);
  await until(async () => (await openFiles()).length === 0);
});

test('the total of the files is bounded, those not read for longest go first', async (t) => {
  const small = await startService({
    workflows: WORKFLOWS,
    settings: { FLOWHOOK_REPRESENTATION_CACHE_MB: '1' },
  });
  t.after(() => small.stop());
  const at = { at: small };
  await publish(manyPeople(4_000), 'people', small);
  for (const format of ['json', 'ndjson', 'csv', 'json']) {
    await get(`${PEOPLE}?format=${format}`, {}, at);
    await untilKept(`${PEOPLE}?format=${format}`, {}, small);
    const directory = join(small.directory, 'data/representations');
    const sizes = await Promise.all(
      (await kept(small)).map(async (name) => (await stat(join(directory, name))).size),
    );
    assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= 1_048_576, `${sizes}`);
    assert.ok((await kept(small)).some((name) => name.endsWith(`-${format}-identity`)));
  }
  await publish(HEAVY, 'people', small);
  for (const time of ['first', 'again']) {
    const readers = await Promise.all([open(PEOPLE, {}, at), open(PEOPLE, {}, at), open(PEOPLE, {}, at)]);
    readers[1]?.destroy();
    for (const reader of [readers[0], readers[2]]) {
      assert.ok((await bodyOf(reader as IncomingMessage)).equals(Buffer.from(json(HEAVY))), time);
    }
  }
  const files = (await kept(small)).filter((name) => !name.endsWith('.making'));
  for (const name of files) {
    const text = await readFile(join(small.directory, 'data/representations', name));
    assert.ok(text.length <= 1_048_576);
  }
});

test('without files a reader overtaken by pruning is broken off, never ended', async (t) => {
  const none = await startService({
    workflows: WORKFLOWS,
    settings: { FLOWHOOK_REPRESENTATION_CACHE_MB: '0' },
  });
  t.after(() => none.stop());
  await publish(HEAVY, 'people', none);
  assert.ok((await get(PEOPLE, {}, { at: none })).body.equals(Buffer.from(json(HEAVY))));
  const stalled = await open(PEOPLE, {}, { at: none });
  await publish(manyPeople(3), 'people', none);
  await prune('people', none);
  await assert.rejects(bodyOf(stalled), /aborted|ECONNRESET/);
  assert.deepEqual(await kept(none), []);
});

test('what an earlier process left is removed at the start', async (t) => {
  const first = await startService({ workflows: WORKFLOWS });
  const directory = join(first.directory, 'data/representations');
  await publish(manyPeople(4_000), 'people', first);
  await get(PEOPLE, {}, { at: first });
  await untilKept(PEOPLE, {}, first);
  await writeFile(join(directory, 'x.making'), 'left');
  const second = async () => {
    const again = await startService({ directory: first.directory });
    t.after(() => rm(first.directory, { recursive: true, force: true }));
    assert.deepEqual(await kept(again), []);
    await again.stop();
  };
  t.after(second);
  await first.stop();
});
