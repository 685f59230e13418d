/** The quarantine: bad records are set aside, listed, accepted and dropped; the rest of a run is published. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const EXPECT = `expect:
  fields: { price: { type: number, min: 0 }, town: { oneOf: [Berlin, Paris] } }
  otherwise: quarantine
`;
const PUSHED = `source: { type: push }\n${EXPECT}`;
const DELIVERED = '{"sku":"a","price":-1}\n{"sku":"b","price":2}';
const names = [
  'replace',
  'twice',
  'refused',
  'accepted',
  'dropped',
  'pages',
  'formats',
  'wide',
  'events',
  'paused',
  'full',
  'erased',
];
const service = await startService({
  workflows: {
    ...Object.fromEntries(names.map((name) => [`default/${name}.yaml`, PUSHED])),
    'default/run.yaml': `source: { type: command, command: ${JSON.stringify(['echo', DELIVERED])} }
key: [sku]
${EXPECT}  fresh: 1h
`,
    'default/append.yaml': `${PUSHED}mode: append\n`,
    'default/strict.yaml': PUSHED.replace('otherwise', 'records: { min: 3 }\n  otherwise'),
  },
});
after(() => service.stop());

interface Entry {
  id: string;
  jobId: string;
  position: number;
  reasons: { field: string; expectation: string; found: unknown; limit: unknown; message: string }[];
  record: Record<string, unknown>;
}

interface Pushed {
  jobId: string;
  version: number;
  records: { total: number; added: number; changed: number; removed: number };
  error: string;
  warning: string;
}

/** A record with this price. */
const item = (id: string, price: unknown, more: object = {}) => ({ id, price, ...more });

async function push(workflow: string, records: object[], query = '') {
  const { status, body } = await service.call('POST', `/v1/workflows/${workflow}/push${query}`, records);
  return { status, ...(body as Pushed) };
}

async function published(workflow: string): Promise<Record<string, unknown>> {
  const { body } = await service.call('GET', `/v1/workflows/${workflow}/data`);
  return Object.fromEntries((body as { id: string; price: unknown }[]).map(({ id, price }) => [id, price]));
}

async function aside(workflow: string, query = ''): Promise<Entry[]> {
  const { status, body } = await service.call('GET', `/v1/workflows/${workflow}/quarantine${query}`);
  assert.equal(status, 200);
  return (body as { records: Entry[] }).records;
}

const idsOf = async (workflow: string, query = '') =>
  (await aside(workflow, query)).map(({ id }) => id).sort();

async function decide(workflow: string, verb: 'accept' | 'drop', body: object) {
  const { status, body: answer } = await service.call(
    'POST',
    `/v1/workflows/${workflow}/quarantine/${verb}`,
    body,
  );
  return {
    status,
    ...(answer as Pushed & {
      accepted: number;
      dropped: number;
      conflicts: { id: string; reason: string }[];
    }),
  };
}

test('bad records are set aside with reasons, and what is published with their ids stays', async () => {
  await push('replace', [item('a', 1), item('b', 2), item('gone', 3)]);
  const run = await push('replace', [
    item('a', -1),
    item('b', 20),
    item('c', 'x', { town: 'Rome' }),
    item('d', 4),
  ]);
  assert.equal(run.status, 200);
  assert.deepEqual(run.records, { total: 3, added: 1, changed: 1, removed: 1 });
  assert.match(run.warning, /^Published without 2 records, now in the quarantine: `price` of 1 record is/);
  assert.deepEqual(await published('replace'), { a: 1, b: 20, d: 4 });
  const [c, a] = await aside('replace');
  assert.deepEqual(a?.reasons, [
    { field: 'price', expectation: 'min', found: -1, limit: 0, message: '`price` is less than 0: -1' },
  ]);
  assert.deepEqual([a?.id, a?.position, a?.jobId, a?.record], ['a', 1, run.jobId, item('a', -1)]);
  assert.deepEqual(
    c?.reasons.map(({ field, expectation }) => `${field} ${expectation}`),
    ['price type', 'town oneOf'],
  );
  const { body } = await service.call('GET', `/v1/jobs/${run.jobId}`);
  assert.equal((body as { quarantined: number }).quarantined, 2);
  const again = await push('replace', [item('a', -1), item('b', 20), item('c', 'x'), item('d', 4)]);
  assert.deepEqual(again.records, { total: 3, added: 0, changed: 0, removed: 0 });
  assert.deepEqual(await idsOf('replace'), ['a', 'c'], 'one entry per id');
  assert.deepEqual(await idsOf('replace', `?jobId=${run.jobId}`), []);
});

test('a later good record ends the entry, also in the same run', async () => {
  const many = Array.from({ length: 2_500 }, (_, n) => item(`p${n}`, n));
  await push('twice', [item('a', -1), item('b', -1), item('c', 'x'), ...many]);
  assert.deepEqual(await idsOf('twice'), ['a', 'b', 'c']);
  await push('twice', [item('a', 5)], '?mode=upsert');
  assert.deepEqual(await idsOf('twice'), ['b', 'c']);
  const run = await push('twice', [item('b', -2), item('d', -1), ...many, item('d', 1), item('b', -3)]);
  assert.equal(run.records.total, 2_501);
  assert.equal((await published('twice')).d, 1);
  const entries = await aside('twice');
  assert.deepEqual(
    entries.map(({ id, position, record }) => [id, position, record.price]),
    [
      ['b', 2_504, -3],
      ['c', 3, 'x'],
    ],
  );
});

test('a run is refused if more than half of its records are bad, or too many', async () => {
  await push('refused', [item('a', 1), item('b', 2)]);
  const half = await push('refused', [item('a', -1), item('b', -2), item('c', 3)]);
  assert.equal(half.status, 422);
  assert.match(
    half.error,
    /2 records \(66\.7 %\) do not meet an expectation.*more than half.*`price` of 2 records/,
  );
  const good = Array.from({ length: 1_200 }, (_, n) => item(`g${n}`, n));
  const bad = Array.from({ length: 1_001 }, (_, n) => item(`b${n}`, -1));
  const many = await push('refused', [...good, ...bad]);
  assert.match(many.error, /1,001 records do not meet .* more than a run can set aside \(1000\).*such as -1/);
  const large = Array.from({ length: 11 }, (_, n) => item(`l${n}`, -1, { text: 'x'.repeat(1_000_000) }));
  const long = await push('refused', [...good, ...large]);
  assert.match(long.error, /with more bytes than a run can set aside/);
  assert.deepEqual(await published('refused'), { a: 1, b: 2 });
  assert.deepEqual(await aside('refused'), []);
  const most = await push('refused', [...good, ...bad.slice(1)]);
  assert.equal(most.status, 200);
  assert.equal((await idsOf('refused', '?limit=1000')).length, 1_000);
});

test('an expectation of the whole run refuses, and sets nothing aside', async () => {
  const run = await push('strict', [item('a', -1), item('b', 2), item('c', 3)]);
  assert.equal(run.status, 422);
  assert.match(run.error, /2 records, fewer than/);
  assert.deepEqual(await aside('strict'), []);
});

test('accepted records are published as they are, by a job', async () => {
  await push('accepted', [item('a', 1), item('b', 2), item('c', 3), item('d', 4)]);
  const run = await push('accepted', [item('a', -1), item('b', -2), item('c', 3), item('d', 4)]);
  const one = await decide('accepted', 'accept', { ids: ['a', 'a'] });
  assert.deepEqual([one.status, one.accepted, one.conflicts], [200, 1, []]);
  assert.deepEqual(one.records, { total: 4, added: 0, changed: 1, removed: 0 });
  assert.deepEqual(await published('accepted'), { a: -1, b: 2, c: 3, d: 4 });
  assert.deepEqual(await idsOf('accepted'), ['b']);
  const { body } = await service.call('GET', `/v1/jobs/${one.jobId}`);
  const job = body as { origin: string; state: string; quarantined: number };
  assert.deepEqual([job.origin, job.state, job.quarantined], ['push', 'finished', 0]);
  const { body: audit } = await service.call('GET', '/v1/audit?action=quarantine.accept');
  const [line] = (audit as { lines: { target: object; summary: string }[] }).lines;
  assert.deepEqual([line?.target, line?.summary], [{ kind: 'job', id: one.jobId }, '1 record, version 2']);

  const other = await decide('accepted', 'accept', { ids: ['a', 'b', 'x'] });
  assert.deepEqual(other.conflicts, [
    { id: 'a', reason: 'published' },
    { id: 'x', reason: 'not_found' },
  ]);
  assert.equal(other.accepted, 1);
  const nothing = await decide('accepted', 'accept', { ids: ['a'] });
  assert.equal(nothing.status, 409);
  assert.match(nothing.error, /"a": a newer record with this ID was published/);
  assert.equal((await decide('accepted', 'accept', { all: true })).status, 409);

  await push('accepted', [item('a', -5), item('b', -6), item('c', 3), item('d', 4)]);
  const late = await decide('accepted', 'accept', { ids: ['a'], untilJobId: run.jobId });
  assert.equal(late.status, 409);
  assert.match(late.error, /a later job has set another record with this ID aside/);
  const all = await decide('accepted', 'accept', { all: true, field: 'price' });
  assert.deepEqual([all.accepted, all.records.changed], [2, 2]);
  assert.deepEqual(await published('accepted'), { a: -5, b: -6, c: 3, d: 4 });
  assert.deepEqual(await aside('accepted'), []);
});

test('dropped records leave the quarantine, and nothing is published', async () => {
  await push('dropped', [item('a', -1), item('b', -2, { town: 'Rome' }), item('c', -3), ...good(4)]);
  const one = await decide('dropped', 'drop', { ids: ['a', 'x'] });
  assert.deepEqual([one.dropped, one.conflicts], [1, [{ id: 'x', reason: 'not_found' }]]);
  const some = await decide('dropped', 'drop', { all: true, field: 'town' });
  assert.equal(some.dropped, 1);
  assert.deepEqual(await idsOf('dropped'), ['c']);
  assert.equal((await decide('dropped', 'drop', { all: true })).dropped, 1);
  assert.equal((await decide('dropped', 'drop', { all: true })).dropped, 0);
  assert.equal(Object.keys(await published('dropped')).length, 4);
  const { body } = await service.call('GET', '/v1/audit?action=quarantine.drop');
  assert.equal((body as { lines: unknown[] }).lines.length, 3);
});

test('an append workflow sets only new ids aside, and appends accepted records', async () => {
  await push('append', [item('a', 1), item('b', 2)]);
  await push('append', [
    item('a', -1),
    item('c', -1),
    item('d', 4),
    item('d', -4),
    item('e', 5),
    item('f', 6),
  ]);
  assert.deepEqual(await idsOf('append'), ['c']);
  assert.equal((await decide('append', 'accept', { ids: ['c'] })).accepted, 1);
  assert.deepEqual(await published('append'), { a: 1, b: 2, c: -1, d: 4, e: 5, f: 6 });
});

test('the quarantine is listed in pages, and by job and field', async () => {
  const run = await push('pages', [...bad(5), ...good(6)]);
  await push('pages', [item('late', 1, { town: 'Rome' })], '?mode=upsert');
  assert.equal(
    (await push('pages', [item('late', 1, { town: 'Rome' }), item('ok', 1)], '?mode=upsert')).status,
    200,
  );
  const found: string[] = [];
  let path: string | undefined = '/v1/workflows/pages/quarantine?limit=2';
  while (path !== undefined) {
    const response = await fetch(`${service.url}${path}`, { headers: { 'x-api-key': service.key } });
    assert.equal(response.headers.get('x-total-count'), '6');
    const { records } = (await response.json()) as { records: Entry[] };
    found.push(...records.map(({ id }) => id));
    path = /<([^>]+)>/.exec(response.headers.get('link') ?? '')?.[1];
  }
  assert.deepEqual(found, ['late', 'bad5', 'bad4', 'bad3', 'bad2', 'bad1']);
  assert.deepEqual(await idsOf('pages', '?field=town'), ['late']);
  assert.equal((await aside('pages', `?jobId=${run.jobId}`)).length, 5);
  assert.deepEqual(await aside('pages', '?field=pric'), []);
});

test('one record is shown beside the published one', async () => {
  await push('formats', [item('a', 1), item('b', 2)]);
  await push('formats', [item('a', -1), item('b', 2), item('c/d ü', -1), item('e', 5)]);
  const read = (id: string) =>
    service.call('GET', `/v1/workflows/formats/quarantine/${encodeURIComponent(id)}`);
  const { body } = await read('a');
  const { record, published } = body as { record: object; published: object };
  assert.deepEqual([record, published], [item('a', -1), item('a', 1)]);
  assert.equal(((await read('c/d ü')).body as { published: null }).published, null);
  for (const id of ['b', 'x', '\0']) assert.equal((await read(id)).status, 404);
});

test('NDJSON and CSV have all records that match', async () => {
  await push('formats', [item('p', 1), item('q', 2), item('a', 1, { note: '=1+1' })]);
  await push('formats', [item('p', 1), item('q', 2), item('a', -1, { note: '=1+1' }), item('b', 'x, y')]);
  const read = async (query: string) => {
    const response = await fetch(`${service.url}/v1/workflows/formats/quarantine${query}`, {
      headers: { 'x-api-key': service.key },
    });
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      text: await response.text(),
    };
  };
  const lines = (await read('?format=ndjson&field=price')).text.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    await aside('formats', '?field=price'),
  );
  const csv = await read('?format=csv');
  assert.match(csv.type ?? '', /text\/csv/);
  const [header, first] = csv.text.split('\r\n');
  assert.equal(header, 'id,_job,_setAsideAt,_reasons,price,note');
  assert.match(first ?? '', /^b,job_\w+,[^,]+Z,"`price` is not of the type number: ""x, y""","x, y",$/);
  assert.match(csv.text, /,-1,'=1\+1\r\n/);
  for (const query of ['?format=csv&limit=2', '?format=xml', '?jobid=1']) {
    assert.equal((await read(query)).status, 400, query);
  }
  assert.equal((await read('?cursor=W10')).status, 400);
});

test('CSV has at most 1,000 columns of fields, so that wide records do not stall the service', async () => {
  const wide = (id: string) => ({
    ...item(id, -1),
    ...Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`${id}${n}`, n])),
  });
  await push('wide', [...good(3), wide('a'), wide('b')]);
  const response = await fetch(`${service.url}/v1/workflows/wide/quarantine?format=csv`, {
    headers: { 'x-api-key': service.key },
  });
  const [header, ...rows] = (await response.text()).trimEnd().split('\r\n');
  assert.equal(header?.split(',').length, 4 + 1_000);
  assert.equal(rows.length, 2);
});

test('events about the end of a run say how many records it has set aside', async () => {
  const run = await push('events', [...bad(2), ...good(3)]);
  const { body } = await service.call('GET', '/v1/events/history?workflowId=events');
  const { events } = body as { events: { type: string; jobId: string; data: { quarantined?: number } }[] };
  const counts = events
    .filter(({ jobId }) => jobId === run.jobId)
    .map(({ type, data }) => [type, data.quarantined]);
  assert.ok(counts.some(([type, count]) => type === 'workflow_finished' && count === 2));
  assert.ok(counts.some(([type, count]) => type === 'workflow_data_change' && count === 2));
});

test('records stay in the quarantine if a quota does not allow accepting them', async () => {
  await push('full', [...bad(2), ...good(3)]);
  const { id: teamId } = service.team;
  await service.store.teams.setQuotas({ teamId, quotas: { records: 1 } });
  const refused = await decide('full', 'accept', { all: true });
  await service.store.teams.setQuotas({ teamId, quotas: { records: null } });
  assert.equal(refused.status, 422);
  assert.match(refused.error, /quota/);
  assert.deepEqual(await idsOf('full'), ['bad1', 'bad2']);
  assert.equal(Object.keys(await published('full')).length, 3);
  assert.equal((await decide('full', 'accept', { all: true })).accepted, 2);
});

test('erasing and exporting a person reach the quarantine', async () => {
  const email = 'ada@example.com';
  const theirs = { id: 'bad1', price: -1, email };
  const quoting = { id: 'bad2', price: -1, town: email };
  await push('erased', [theirs, quoting, ...good(3)]);
  const headers = { 'x-api-key': service.key, 'content-type': 'application/json' };
  const body = JSON.stringify({ email });
  const response = await fetch(`${service.url}/v1/export`, { method: 'POST', headers, body });
  const lines = (await response.text()).trimEnd().split('\n');
  const found = lines.map((line) => JSON.parse(line) as { place: string; text: unknown });
  const own = found.find(({ place }) => place === 'quarantined');
  assert.deepEqual(JSON.parse(String(own?.text)), theirs);
  assert.ok(found.some(({ place }) => place === 'quarantineReasons'));
  const erased = await service.call('POST', '/v1/workflows/erased/erase', { email });
  assert.equal(erased.status, 200);
  const left = await aside('erased');
  assert.deepEqual(
    left.map(({ id }) => id),
    ['bad2'],
    'records of other people stay',
  );
  assert.ok(!JSON.stringify(left[0]?.reasons).includes(email));
});

test('erasing a person who was only set aside reaches what findings, errors and logs quote', async () => {
  const email = 'ada.byron@example.com';
  const theirs = (price: string) => ({ id: '7', price, email });
  const published = await push('erased', [theirs('secret-1'), ...good(3)]);
  await push('erased', [theirs('secret-2'), item('worse', -1), ...good(1)]);
  const stored = async () => {
    const range = { teamId: service.team.id, afterSequence: 0, limit: 1_000 };
    const { body: jobs } = await service.call('GET', '/v1/jobs?workflowId=erased&limit=2');
    const [last] = (jobs as { jobs: { id: string }[] }).jobs;
    const log = (await service.call('GET', `/v1/jobs/${last?.id}/logs`)).body;
    return [await service.store.events.list(range), jobs, log].map((one) => JSON.stringify(one));
  };
  assert.equal(published.status, 200);
  for (const text of await stored()) assert.match(text, /secret-2/);
  assert.equal((await service.call('POST', '/v1/workflows/erased/erase', { email })).status, 200);
  for (const text of await stored()) assert.doesNotMatch(text, /secret/);
});

test('a run sets nothing aside of people who are suppressed', async () => {
  await service.call('POST', '/v1/workflows/erased/erase', { email: 'eve@example.com', suppress: true });
  await push('erased', [{ id: 'bad9', price: -1, email: 'eve@example.com' }, ...good(3)]);
  assert.ok(!(await idsOf('erased')).includes('bad9'));
});

test('what a command delivers is set aside and accepted like what is pushed', async () => {
  const run = async () => {
    const { headers } = await service.call('POST', '/v1/workflows/run/queue');
    const path = `/v1/jobs/${headers.get('x-job-id')}`;
    return until('the job has finished', async () => {
      const { body } = await service.call('GET', path);
      return (body as { state: string }).state === 'finished' ? (body as Pushed) : undefined;
    });
  };
  await run();
  assert.deepEqual(await idsOf('run'), ['a']);
  const freshUntil = async () => {
    const { body } = await service.call('GET', '/v1/workflows/run');
    return (body as { freshUntil: string }).freshUntil;
  };
  const before = await freshUntil();
  const accepted = await decide('run', 'accept', { ids: ['a'] });
  assert.equal(accepted.status, 200, accepted.error);
  assert.deepEqual(await published('run'), { a: -1, b: 2 });
  assert.equal(await freshUntil(), before, 'accepting is no news from the source');
  assert.equal((await run()).records.changed, 0);
  assert.deepEqual(await published('run'), { a: -1, b: 2 }, 'the accepted record stays');
  assert.deepEqual(await idsOf('run'), ['a']);
});

test('requests that select nothing sensible are refused', async () => {
  await push('paused', [...bad(1), ...good(2)]);
  const bodies = [{}, { ids: [] }, { ids: ['a'], all: true }, { ids: [1] }, { ids: ['a\0'] }, { all: false }];
  for (const body of [...bodies, { ids: ['a'], field: 'x' }, { all: true, jobId: 'x' }, { id: 'a' }]) {
    assert.equal((await decide('paused', 'accept', body)).status, 400, JSON.stringify(body));
    assert.equal((await decide('paused', 'drop', body)).status, 400, JSON.stringify(body));
  }
  for (const verb of ['accept', 'drop'] as const)
    assert.equal((await decide('nowhere', verb, { all: true })).status, 404);
  await service.call('POST', '/v1/workflows/paused/pause');
  assert.equal((await decide('paused', 'accept', { all: true })).status, 409);
});

function good(count: number): object[] {
  return Array.from({ length: count }, (_, n) => item(`good${n + 1}`, n));
}

function bad(count: number): object[] {
  return Array.from({ length: count }, (_, n) => item(`bad${n + 1}`, -1));
}
