/** Drift of a workflow that expects nothing: the event, the findings, the profile and its command. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runCommand } from '../support/cli/commands.ts';
import { startService } from '../support/service.ts';

type Json = Record<string, unknown>;

const service = await startService({ workflows: { 'default/shop.yaml': 'source: { type: push }\n' } });
after(() => service.stop());

const products = (version: number, change: (record: Json, at: number) => Json = (record) => record) =>
  Array.from({ length: 40 }, (_, at) => change({ id: `p${at}`, price: at + version / 10, name: 'Pen' }, at));

async function push(records: Json[]): Promise<{ warning: unknown; job: Json; events: Json[] }> {
  const { status, body } = await service.call('POST', '/v1/workflows/shop/push', records);
  assert.equal(status, 200);
  const { jobs } = (await service.call('GET', '/v1/jobs?workflowId=shop&limit=1')).body as { jobs: Json[] };
  const [job = {}] = jobs;
  const { events } = (await service.call('GET', `/v1/events/history?jobId=${job.id}`)).body as {
    events: Json[];
  };
  return { warning: (body as Json).warning, job, events };
}

const typesOf = (events: Json[]) => events.map(({ type }) => type);

test('reports a changed schema and unusual values of the sixth version once', async () => {
  for (let version = 1; version <= 5; version += 1) {
    const { job, events } = await push(products(version));
    assert.equal(job.findings, null);
    assert.ok(!typesOf(events).includes('workflow_schema_changed'));
  }
  const changed = (version: number) =>
    products(version, ({ name, ...record }, at) => ({
      ...record,
      price: at < 20 ? null : record.price,
      title: name,
    }));
  const { job, events, warning } = await push(changed(6));
  const findings = job.findings as Json[];
  assert.deepEqual(
    findings.map(({ expectation, field, drift }) => [expectation, field, drift]),
    [
      ['new', 'title', true],
      ['vanished', 'name', true],
      ['filled', 'price', true],
    ],
  );
  const sentences = [
    '`title` is new: 40 records (100 %) have it; `name` has vanished: no record has it, usually 100 % have it',
    '`price` is filled in 50 % of the records, usually in 100 %',
  ];
  const dataOf = (type: string) => events.find((event) => event.type === type)?.data as Json | undefined;
  assert.equal(dataOf('workflow_schema_changed')?.error, sentences[0]);
  // Sentences are made when a job is read.
  const sent = findings.map(({ message: _, ...finding }) => finding);
  assert.deepEqual(dataOf('workflow_schema_changed')?.findings, sent.slice(0, 2));
  assert.equal(dataOf('workflow_expectation_failed')?.error, sentences[1]);
  assert.equal(warning, `Published, although not as expected: ${sentences.join('; ')}`);

  const next = await push(changed(7));
  assert.equal(next.job.findings, null);
  assert.ok(!typesOf(next.events).includes('workflow_schema_changed'));
});

test('shows the profiles of the newest versions, and suggests expectations', async () => {
  const { status, body } = await service.call('GET', '/v1/workflows/shop/profile?versions=3');
  assert.equal(status, 200);
  const { profiles, expect } = body as { profiles: { version: number; fields: Json[] }[]; expect: Json };
  assert.deepEqual(
    profiles.map(({ version }) => version),
    [7, 6, 5],
  );
  const price = profiles[0]?.fields[1];
  assert.deepEqual(price, {
    name: 'price',
    present: 40,
    filled: 20,
    kinds: { number: 20 },
    distinct: price?.distinct,
    min: 20.7,
    max: 39.7,
    shortest: null,
    longest: null,
    earliest: null,
    latest: null,
  });
  const { status: put } = await service.call('PUT', '/v1/workflows/expecting', {
    source: { type: 'push' },
    expect,
  });
  assert.ok(put === 200 || put === 201, 'the suggestion is valid');
  assert.equal((await service.call('GET', '/v1/workflows/nobody/profile')).status, 404);
  assert.equal((await service.call('GET', '/v1/workflows/shop/profile?versions=101')).status, 400);
});

test('the command shows each field over time, and prints expectations', async () => {
  const command = (...args: string[]) =>
    runCommand(args, {
      directory: service.directory,
      environment: { FLOWHOOK_DATA: join(service.directory, 'data'), ...service.database.settings },
    });
  const { stdout } = await command('workflows', 'profile', 'shop');
  assert.match(stdout, /^version 7: 40 records +█{7}\n/);
  assert.match(stdout, /\nprice +number +50 % +█████▅▅ +about \d+ +20.7 to 39.7\n/);
  const { stdout: yaml } = await command('workflows', 'profile', 'shop', '--expect', '--versions', '5');
  assert.match(yaml, /^expect:\n {2}records:\n {4}min: 20\n {4}max: 80\n/);
  assert.match(yaml, / {4}price:\n {6}type: number\n {6}min: 0\n {6}filled: 45%\n/);
  const { stdout: json } = await command('workflows', 'profile', 'shop', '--json');
  assert.equal(JSON.parse(json).profiles.length, 7);
});
