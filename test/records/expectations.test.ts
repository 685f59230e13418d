/** Expectations of a workflow, through the API and the commands: each kind, and what happens otherwise. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runCommand } from '../support/cli/commands.ts';
import { startService } from '../support/service.ts';

type Json = Record<string, unknown>;

const expecting = (expect: string, more = '') => `source: { type: push }\nexpect: ${expect}\n${more}`;
const service = await startService({
  workflows: {
    'default/min.yaml': expecting('{ records: { min: 2 } }'),
    'default/max.yaml': expecting('{ records: { max: 2 } }'),
    'default/drop.yaml': expecting('{ records: { drop: 20% } }'),
    'default/rise.yaml': expecting('{ records: { rise: 100% } }'),
    'default/duplicates.yaml': expecting('{ records: { duplicates: 10% } }'),
    'default/type.yaml': expecting('{ fields: { price: { type: number } } }'),
    'default/bounds.yaml': expecting('{ fields: { price: { min: 0, max: 9 } } }'),
    'default/filled.yaml': expecting('{ fields: { price: { filled: 98% } } }'),
    'default/unique.yaml': expecting('{ fields: { url: { unique: true } } }'),
    'default/list.yaml': expecting('{ fields: { shop.state: { oneOf: [open, closed] } } }'),
    'default/pattern.yaml': expecting('{ fields: { sku: { matches: "^[A-Z]{2}-" } } }'),
    'default/warned.yaml': expecting('{ fields: { price: { type: number, filled: 98% } }, otherwise: warn }'),
    'default/old.yaml': 'source: { type: push }\nguards: { minRecords: 2, maxDropPercent: 20 }\n',
  },
});
after(() => service.stop());

async function push(
  workflow: string,
  records: object[],
  query = '',
): Promise<{ status: number; body: Json }> {
  const { status, body } = await service.call('POST', `/v1/workflows/${workflow}/push${query}`, records);
  return { status, body: body as Json };
}

const command = (...args: string[]) =>
  runCommand(args, {
    directory: service.directory,
    environment: { FLOWHOOK_DATA: join(service.directory, 'data'), ...service.database.settings },
  });

async function lastJob(workflow: string): Promise<Json & { findings: Json[] | null; reason: string | null }> {
  const { body } = await service.call('GET', `/v1/jobs?workflowId=${workflow}&limit=1`);
  return (body as { jobs: never[] }).jobs[0] as never;
}

const many = (count: number, of: (n: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, n) => ({ id: `r${n}`, ...of(n) }));

const CASES: [workflow: string, good: object[], bad: object[], finding: Json, error: RegExp][] = [
  ['min', many(2), many(1), { expectation: 'records.min', found: 1, limit: 2 }, /1 record, fewer than/],
  ['max', many(2), many(3), { expectation: 'records.max', found: 3, limit: 2 }, /3 records, more than/],
  [
    'drop',
    many(10),
    many(7),
    { expectation: 'records.drop', found: 30, limit: 20 },
    /7 records after a drop by 30 %/,
  ],
  [
    'rise',
    many(2),
    many(5),
    { expectation: 'records.rise', found: 150, limit: 100 },
    /5 records after a rise by 150 %/,
  ],
  [
    'duplicates',
    many(2),
    [...many(2), ...many(2)],
    { expectation: 'records.duplicates', found: 50, limit: 10, count: 2 },
    /2 records \(50 %\) had an id/,
  ],
  [
    'type',
    many(2, (n) => ({ price: n + 0.5 })),
    many(2, () => ({ price: '7' })),
    { expectation: 'type', field: 'price', found: '7', limit: 'number', count: 2, examples: ['r0', 'r1'] },
    /`price` of 2 records is not of the type number, such as "7" of the record r0/,
  ],
  [
    'bounds',
    many(10, (price) => ({ price })),
    many(11, (price) => ({ price })),
    { expectation: 'max', field: 'price', found: 10, limit: 9, count: 1, examples: ['r10'] },
    /`price` of 1 record is more than 9, such as 10 of the record r10/,
  ],
  [
    'filled',
    many(100, (n) => ({ price: n < 98 ? n : null })),
    many(100, (n) => ({ price: n < 97 ? n : '' })),
    {
      expectation: 'filled',
      field: 'price',
      found: 97,
      limit: 98,
      count: 3,
      examples: ['r97', 'r98', 'r99'],
    },
    /`price` is filled in 97 % of the records, less than .* \(98%\); it is empty in the records r97, r98, r99/,
  ],
  [
    'unique',
    many(3, (n) => ({ url: `u${n}` })),
    many(3, (n) => ({ url: `u${n % 2}` })),
    { expectation: 'unique', field: 'url', found: 'u0', limit: true, count: 1, examples: ['r2'] },
    /`url` of 1 record has the value of another record, such as "u0" of the record r2/,
  ],
  [
    'list',
    many(2, () => ({ shop: { state: 'open' } })),
    many(2, () => ({ shop: { state: 'opne' } })),
    { expectation: 'oneOf', field: 'shop.state', found: 'opne', count: 2, examples: ['r0', 'r1'] },
    /`shop\.state` of 2 records is none of \["open","closed"\]/,
  ],
  [
    'pattern',
    many(2, (n) => ({ sku: `AB-${n}` })),
    many(2, (n) => ({ sku: n })),
    { expectation: 'matches', field: 'sku', found: 0, limit: '^[A-Z]{2}-', count: 2, examples: ['r0', 'r1'] },
    /`sku` of 2 records does not match \^\[A-Z\]\{2\}-/,
  ],
];

for (const [workflow, good, bad, finding, error] of CASES) {
  test(`a run that does not meet ${finding.expectation} is refused, and the data stays`, async () => {
    assert.equal((await push(workflow, good)).status, 200);
    assert.equal((await lastJob(workflow)).findings, null);
    const refused = await push(workflow, bad);
    assert.equal(refused.status, 422);
    assert.match(String(refused.body.error), error);
    const { reason, findings } = await lastJob(workflow);
    assert.equal(reason, 'guard');
    assert.equal(findings?.length, 1);
    for (const [name, value] of Object.entries(finding)) assert.deepEqual(findings?.[0]?.[name], value, name);
    const { body } = await service.call('GET', `/v1/workflows/${workflow}/data`);
    assert.equal((body as unknown[]).length, good.length);
  });
}

test('`warn` publishes, and says what is not as expected in the job, the event, the push and the commands', async () => {
  const records = many(4, (n) => ({ price: n === 0 ? 'n/a' : n === 1 ? null : n }));
  const { status, body } = await push('warned', records);
  assert.equal(status, 200);
  const sentence =
    '`price` is filled in 75 % of the records, less than `expect.fields.price.filled` (98%); it is empty in the record r1; ' +
    '`price` of 1 record is not of the type number, such as "n/a" of the record r0';
  assert.equal(body.warning, `Published, although not as expected: ${sentence}`);
  const { id, state, findings } = await lastJob('warned');
  assert.equal(state, 'finished');
  assert.deepEqual(
    findings?.map(({ expectation }) => expectation),
    ['filled', 'type'],
  );
  const events = await service.call('GET', `/v1/events/history?jobId=${id}`);
  const event = (events.body as { events: Json[] }).events.find(
    ({ type }) => type === 'workflow_expectation_failed',
  );
  assert.ok(event !== undefined, 'the event was sent');
  assert.equal((event.data as Json).error, sentence);
  assert.equal(findings?.map(({ message }) => message).join('; '), sentence);
  assert.deepEqual(
    (event.data as Json).findings,
    findings.map(({ message: _, ...finding }) => finding),
    'events have one sentence for all findings',
  );
  const shown = await command('jobs', 'show', String(id));
  assert.match(shown.stdout, /not as expected +`price` is filled in 75 % .*\n {17}`price` of 1 record/);
  assert.deepEqual(
    JSON.parse((await command('jobs', 'show', String(id), '--json')).stdout).findings,
    findings,
  );
  const listed = await command('workflows', 'show', 'warned');
  assert.match(listed.stdout, /expects +at least 1 record; price: number, filled 98%; otherwise warn/);
});

test('`warn` does not let an empty push remove everything', async () => {
  await push(
    'warned',
    many(2, (price) => ({ price })),
  );
  const { status, body } = await push('warned', []);
  assert.equal(status, 422);
  assert.match(String(body.error), /0 records, fewer than `expect\.records\.min` \(default: 1\)/);
});

test('the guards of an earlier file are expectations', async () => {
  assert.equal((await push('old', many(1))).status, 422);
  await push('old', many(10));
  const { body } = await push('old', many(7));
  assert.match(String(body.error), /a drop by 30 %, more than `expect\.records\.drop` \(20%\)/);
  const { body: defined } = await service.call('GET', '/v1/workflows/old/definition');
  const { expect, guards } = (defined as { definition: Json }).definition;
  assert.deepEqual((expect as { records: Json }).records, {
    min: 2,
    max: null,
    drop: 20,
    rise: null,
    duplicates: null,
  });
  assert.equal(guards, undefined);
});

test('a definition over the API names each mistake of `expect`', async () => {
  const { status, body } = await service.call('PUT', '/v1/workflows/new', {
    source: { type: 'push' },
    expect: { records: { min: 1, drp: '5%' }, fields: { price: { filled: 98 } } },
  });
  assert.equal(status, 400);
  assert.match(
    String((body as Json).error),
    /`expect\.records\.drp` is not a known setting. Did you mean `drop`\?/,
  );
  assert.match(
    String((body as Json).error),
    /`expect\.fields\.price\.filled` must be a percentage .*Add `%`/,
  );
});
