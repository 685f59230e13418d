/** History over HTTP: changes since a time, of some types and fields, as CSV; the changes of one record; what is kept. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allSteps } from '../../src/store/conformance/setup.ts';
import { readCsv } from '../support/records/csv.ts';
import { startService } from '../support/service.ts';

const service = await startService({
  workflows: {
    'default/prices.yaml': 'source: { type: push }\nkeep: { versions: 500, days: 90 }\n',
    'default/short.yaml': 'source: { type: push }\nkeep: { versions: 2 }\n',
    'default/texts.yaml': 'source: { type: push }\ncompare: text\n',
    'default/values.yaml': 'source: { type: push }\n',
    'default/persons.yaml': 'source: { type: push }\n',
  },
});
after(() => service.stop());

type Row = Record<string, unknown>;
const ask = (path: string, headers = {}) =>
  fetch(`${service.url}/v1/workflows/${path}`, { headers: { 'x-api-key': service.key, ...headers } });
const read = async (path: string) => (await ask(path)).json() as Promise<Row[]>;

async function push(workflow: string, lines: string): Promise<Row> {
  const response = await fetch(`${service.url}/v1/workflows/${workflow}/push`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/x-ndjson' },
    body: lines,
  });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as Row;
}
const pushAll = (workflow: string, rows: readonly Row[]) =>
  push(workflow, rows.map((row) => JSON.stringify(row)).join('\n'));

/** When each version was published, by its number. */
async function timesOf(workflow: string): Promise<string[]> {
  const { versions } = (await (await ask(`${workflow}/versions`)).json()) as {
    versions: { number: number; publishedAt: string }[];
  };
  const times: string[] = [];
  for (const { number, publishedAt } of versions) times[number] = publishedAt;
  return times;
}

const justBefore = (time: string | undefined) => new Date(Date.parse(String(time)) - 1).toISOString();

async function pruneAll(workflowId: string): Promise<void> {
  const retention = { keepVersions: 10, keepMs: Number.MAX_SAFE_INTEGER, graceMs: -60_000, limit: 500 };
  await allSteps(service.store.records.prune, { teamId: service.team.id, workflowId, ...retention });
}

test('refuses a time whose day does not exist', async () => {
  for (const query of ['since=2026-02-30', 'since=0&until=2026-02-29T10:00Z']) {
    const { status, headers } = await ask(`prices/changes?${query}`);
    assert.deepEqual([status, headers.get('x-error-code')], [400, 'field_invalid']);
  }
  const { error } = (await (await ask('prices/changes?since=2026-02-30')).json()) as { error: string };
  assert.match(error, /^The query parameter `since` must be .*: there is no day 2026-02-30$/);
});

test('lists the changes since a time, of one field or type', async () => {
  await pushAll('prices', [
    { id: 'a', price: 1, stock: 5 },
    { id: 'b', price: 2, stock: 5 },
    { id: 'c', price: 3 },
  ]);
  await pushAll('prices', [
    { id: 'a', price: 1, stock: 4 },
    { id: 'b', price: 2.5, stock: 4 },
    { id: 'd', stock: 1 },
  ]);
  const times = await timesOf('prices');
  const since = `since=${times[1]}`;
  const got = await ask(`prices/changes?${since}&field=price`);
  assert.deepEqual([got.headers.get('x-since-version'), got.headers.get('x-data-version')], ['1', '2']);
  assert.deepEqual(await got.json(), [
    { type: 'changed', id: 'b', version: 2, fields: [{ key: 'price', value: 2.5, previousValue: 2 }] },
    { type: 'removed', id: 'c', version: 2, fields: [{ key: 'price', previousValue: 3 }] },
  ]);
  const ids = async (query: string) => (await read(`prices/changes?${query}`)).map(({ id }) => id);
  assert.deepEqual(await ids(`${since}&type=changed`), ['a', 'b']);
  assert.deepEqual(await ids(`${since}&type=removed,added`), ['d', 'c']);
  assert.deepEqual(await ids(`${since}&type=removed`), ['c']);
  assert.deepEqual(await ids(`${since}&type=changed&field=price&field=none`), ['b']);
  assert.deepEqual(await ids(`${since}&field=stock&filter=${encodeURIComponent('record.price > 2')}`), ['b']);
  assert.deepEqual(await read(`prices/changes?${since}&type=added&field=stock`), [
    { type: 'added', id: 'd', version: 2, record: { id: 'd', stock: 1 } },
  ]);
  // Before the first version, there were no records.
  assert.deepEqual(await ids(`since=2000-01-01&until=${times[1]}`), ['a', 'b', 'c']);
  assert.deepEqual(await ids(`since=2000-01-01&until=${justBefore(times[1])}`), []);
  assert.deepEqual(await ids(`since=${times[2]}`), []);
  assert.deepEqual(await ids('since=2100-01-01'), []);
});

test('another selection of changes has another entity tag', async () => {
  const tag = async (query: string) => (await ask(`prices/changes?since=1${query}`)).headers.get('etag');
  const tags = await Promise.all(['', '&field=price', '&type=added', '&format=csv'].map(tag));
  assert.equal(new Set(tags).size, 4);
  assert.equal((await ask('prices/changes?since=1', { 'if-none-match': String(tags[0]) })).status, 304);
});

test('CSV has a line for each field of a change', async () => {
  const response = await ask('prices/changes?since=1&format=csv');
  assert.match(response.headers.get('content-type') ?? '', /^text\/csv/);
  assert.deepEqual(readCsv(await response.text()), [
    ['type', 'id', 'version', 'field', 'value', 'previousValue'],
    ['changed', 'a', '2', 'stock', '4', '5'],
    ['changed', 'b', '2', 'price', '2.5', '2'],
    ['changed', 'b', '2', 'stock', '4', '5'],
    ['added', 'd', '2', 'stock', '1', ''],
    ['removed', 'c', '2', 'price', '', '3'],
  ]);
  const empty = await ask('prices/changes?since=2', { accept: 'text/csv' });
  assert.equal(await empty.text(), 'type,id,version,field,value,previousValue\r\n');
});

test('lists the changes of a record in pages, newest first', async () => {
  const { jobId } = await push('prices', '{"id":"c/1","price":7}');
  await pushAll('prices', [{ id: 'c/1', price: 8 }, { id: 'c' }]);
  const path = `prices/records/${encodeURIComponent('c/1')}/history`;
  const times = await timesOf('prices');
  const page = await ask(`${path}?limit=1`);
  const { history } = (await page.json()) as { history: Row[] };
  assert.deepEqual(
    history.map(({ jobId: _, ...change }) => change),
    [
      {
        type: 'changed',
        version: 4,
        publishedAt: times[4],
        fields: [{ key: 'price', value: 8, previousValue: 7 }],
      },
    ],
  );
  const [, next = ''] = /^<\/v1\/workflows\/([^>]+)>/.exec(page.headers.get('link') ?? '') ?? [];
  const last = await ask(next);
  assert.equal(last.headers.get('link'), null);
  assert.deepEqual(await last.json(), {
    history: [{ type: 'added', version: 3, publishedAt: times[3], jobId, record: { id: 'c/1', price: 7 } }],
  });
  // Removed in version 2, and added again in version 4.
  const returned = (await (await ask('prices/records/c/history')).json()) as { history: Row[] };
  assert.deepEqual(
    returned.history.map(({ type, version }) => [type, version]),
    [
      ['added', 4],
      ['removed', 2],
      ['added', 1],
    ],
  );
  for (const unknown of ['prices/records/none/history', 'none/records/c/history']) {
    assert.equal((await ask(unknown)).status, 404, unknown);
  }
  assert.equal((await ask('prices/records/c/history?cursor=x')).status, 400);
});

test('a workflow keeps as many versions as its definition says, and shows what they cost', async () => {
  for (const n of [1, 2, 3, 4]) await pushAll('short', [{ id: 'a', n }, { id: 'b' }]);
  const shown = async () => {
    const { keep, history } = (await service.call('GET', '/v1/workflows/short')).body as {
      keep: Row;
      history: { versions: number; oldest: { version: number } | null; bytes: number };
    };
    return { keep, ...history, oldest: history.oldest?.version };
  };
  const bytes = '{"id":"a","n":1}'.length;
  const keep = { versions: 2, days: 3_650 };
  assert.deepEqual(await shown(), { keep, versions: 4, oldest: 1, bytes: 3 * bytes });
  const times = await timesOf('short');
  await pruneAll('short');
  assert.deepEqual(await shown(), { keep, versions: 2, oldest: 3, bytes });
  const { workflows } = (await service.call('GET', '/v1/workflows')).body as { workflows: Row[] };
  const listed = workflows.find(({ id }) => id === 'values');
  assert.deepEqual(
    [listed?.keep, listed?.history],
    [
      { versions: 10, days: 30 },
      { versions: 0, oldest: null, bytes: 0 },
    ],
  );

  // Requests for what was before name the oldest version.
  for (const query of ['since=2', `since=${justBefore(times[3])}`, `since=0&until=${times[2]}`]) {
    const { status, body } = await service.call('GET', `/v1/workflows/short/changes?${query}`);
    assert.equal(status, 410, query);
    const oldest = `the oldest one that is stored is 3, published at ${times[3]}`;
    assert.ok((body as { error: string }).error.includes(oldest), JSON.stringify(body));
  }
  assert.equal((await read(`short/changes?since=${times[3]}`)).length, 1);
  const history = (await (await ask('short/records/a/history')).json()) as { history: Row[] };
  assert.deepEqual(
    history.history.map(({ type, version, record }) => [type, version, record]),
    [
      ['changed', 4, undefined],
      ['existing', 3, { id: 'a', n: 3 }],
    ],
  );
});

test('records are compared by value, or by text if the definition says so', async () => {
  const first = '{"id":"a","n":1.0,"in":{"x":1,"y":2},"s":"é"}';
  const same = '{"id":"a","s":"\\u00e9","in":{"y":2,"x":1},"n":1}';
  assert.equal((await push('values', first)).version, 1);
  assert.equal((await push('values', same)).version, 1);

  assert.equal((await push('texts', first)).version, 1);
  assert.equal((await push('texts', first)).version, 1);
  assert.equal((await push('texts', same)).version, 2);
  const body = await (await ask('texts/changes?since=1')).text();
  assert.equal(
    body,
    '[{"type":"changed","id":"a","version":2,"fields":[{"key":"n","value":1,"previousValue":1.0},' +
      '{"key":"in","value":{"y":2,"x":1},"previousValue":{"x":1,"y":2}}]}]',
  );
  assert.equal(await (await ask('texts/data?version=1')).text(), `[${first}]`);
  // Only the order of the fields differs.
  await push('texts', '{"id":"a","n":1,"s":"é","in":{"y":2,"x":1}}');
  assert.deepEqual(await read('texts/changes?since=2'), [
    { type: 'changed', id: 'a', version: 3, fields: [] },
  ]);
  assert.deepEqual(await read('texts/changes?since=2&field=n'), []);
  const table = await (await ask('texts/changes?since=2&format=csv')).text();
  assert.equal(table.split('\r\n')[1], 'changed,a,3,,,');
  const events = await service.store.events.list({ teamId: service.team.id, afterSequence: 0, limit: 1_000 });
  const told = events.filter(
    ({ type, workflowId }) => type === 'workflow_data_change' && workflowId === 'texts',
  );
  assert.match(told[1]?.body ?? '', /"key":"n","value":1,"previousValue":1\.0/);
});

test('erasing a person removes their history', async () => {
  const ada = { id: '1', email: 'ada@example.com' };
  const bob = { id: '2', email: 'bob@example.com' };
  await pushAll('persons', [
    { ...ada, name: 'Ada' },
    { ...bob, name: 'Bob' },
  ]);
  await pushAll('persons', [
    { ...ada, name: 'Ada Lovelace' },
    { ...bob, name: 'Bob B.' },
  ]);
  await pushAll('persons', [{ ...bob, name: 'Bob B.' }]);
  const erased = await service.call('POST', '/v1/workflows/persons/erase', { email: ada.email });
  assert.equal(erased.status, 200);
  assert.equal((await ask('persons/records/1/history')).status, 404);
  for (const query of [
    'since=0',
    'since=1',
    'since=0&until=1',
    'since=2',
    'since=0&field=email&format=csv',
  ]) {
    assert.doesNotMatch(await (await ask(`persons/changes?${query}`)).text(), /ada/i, query);
  }
  const { history } = (await service.call('GET', '/v1/workflows/persons')).body as { history: Row };
  assert.equal(history.bytes, JSON.stringify({ ...bob, name: 'Bob' }).length);
});
