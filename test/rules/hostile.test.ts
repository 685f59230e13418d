/** Filters and templates that never end, or are as large as allowed: only their own webhook is late, and it says why. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const service = await startService({
  workflows: { 'default/shop.yaml': 'source: { type: push }\nmode: upsert\n' },
  settings: { FLOWHOOK_ALLOW_NETWORKS: 'loopback' },
});
after(() => service.stop());

const NUMBERS = Array.from({ length: 100_000 }, (_, n) => n);
/** A record at which nested macros and backtracking patterns take longer than anybody waits. */
const HEAVY = { numbers: NUMBERS, name: `${'a'.repeat(40)}!` };
const NESTED = 'record.numbers.exists(a, record.numbers.exists(b, a == b + 1000000))';
const EXPRESSION_LIMIT = 4_096;
const TEMPLATE_LIMIT = 256 * 1024;

interface Hook {
  id: string;
  receiver: Receiver;
}

async function hook(settings: Record<string, unknown>): Promise<Hook> {
  const receiver = await startReceiver();
  after(() => receiver.stop());
  const { status, body } = await service.call('POST', '/v1/integrations/webhooks', {
    workflowId: 'shop',
    webhookUrl: receiver.url,
    events: ['workflow_data_change'],
    firstVersion: 'send',
    ...settings,
  });
  assert.ok(status === 200 || status === 201, JSON.stringify(body));
  return { id: (body as { id: string }).id, receiver };
}

/** Removes the webhooks of a case, so that the next one is not affected. */
async function removed(...hooks: Hook[]): Promise<void> {
  for (const { id } of hooks) await service.call('DELETE', `/v1/integrations/webhooks/${id}`);
}

async function push(...records: object[]): Promise<void> {
  const response = await fetch(`${service.url}/v1/workflows/shop/push`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/x-ndjson' },
    body: records.map((record) => JSON.stringify(record)).join('\n'),
  });
  assert.equal(response.status, 200, await response.text());
}

async function mistakeOf({ id }: Hook): Promise<{ message: string; recordId: string | null } | undefined> {
  const { body } = await service.call('GET', `/v1/integrations/webhooks/${id}`);
  return (
    (body as { filterMistake: { message: string; recordId: string | null } | null }).filterMistake ??
    undefined
  );
}

async function decisionsOf({ id }: Hook): Promise<{ state: string; reason: string | null }[]> {
  const { body } = await service.call('GET', `/v1/integrations/webhooks/${id}/decisions`);
  return (body as { decisions: { state: string; reason: string | null }[] }).decisions;
}

let records = 0;
const nextId = () => `r${records++}`;

test('a filter that would not end delays only its own webhook, which then reports the record', async () => {
  const slow = await hook({ filter: NESTED });
  const normal = await Promise.all(
    [1, 2, 3].map((n) => hook({ filter: `change == "added" && id != "${n}"` })),
  );
  const heavy = nextId();
  await push({ id: heavy, ...HEAVY });
  for (const { receiver } of normal) await receiver.until((all) => all.length === 1, 'the first version');
  await push({ id: nextId(), numbers: [1, 2] });
  for (const { receiver } of normal) await receiver.until((all) => all.length === 2, 'the second version');
  const mistake = await until('the slow webhook reports its mistake', () => mistakeOf(slow));
  assert.equal(mistake.recordId, heavy);
  assert.match(mistake.message, /more than 200,000 steps/);
  await until('the slow webhook continues', async () => {
    const states = (await decisionsOf(slow)).map(({ state }) => state);
    return states.length === 2 && states.every((state) => state === 'filtered');
  });
  assert.equal(slow.receiver.received.length, 0);
  await removed(slow, ...normal);
});

test('a pattern that backtracks without end is refused, or ends in time', async () => {
  const filter = 'record.name.matches("^(a+)+$")';
  const { status, body } = await service.call('POST', '/v1/integrations/webhooks', {
    workflowId: 'shop',
    webhookUrl: 'http://127.0.0.1:9/refused',
    events: ['workflow_data_change'],
    filter,
  });
  const normal = await hook({ filter: 'change == "added"' });
  const pattern = status === 400 ? undefined : await hook({ filter });
  await push({ id: nextId(), ...HEAVY });
  await normal.receiver.until((all) => all.length === 1, 'the version');
  if (pattern === undefined) assert.match(JSON.stringify(body), /filter/);
  else {
    await until('it is decided', async () =>
      (await decisionsOf(pattern)).every(({ state }) => state === 'filtered'),
    );
    await removed(pattern);
  }
  await removed(normal);
});

test('a template whose result would be larger than 256 KiB falls back to the standard body', async () => {
  const template = { all: Array.from({ length: 100 }, () => `\${record.numbers}`) };
  const bomb = await hook({ filter: 'change == "added"', format: 'template', template });
  const repeated = await hook({
    filter: 'change == "added"',
    format: 'template',
    template: { text: `\${record.name}`.repeat(200) },
  });
  const normal = await hook({ filter: 'change == "added"' });
  await push({ id: nextId(), ...HEAVY });
  await normal.receiver.until((all) => all.length === 1, 'the version');
  await bomb.receiver.until((all) => all.length === 1, 'the standard body instead');
  assert.ok((bomb.receiver.received[0]?.text.length ?? 0) <= TEMPLATE_LIMIT);
  assert.equal(bomb.receiver.received[0]?.event.type, 'workflow_data_change');
  assert.ok(await mistakeOf(bomb));
  await repeated.receiver.until((all) => all.length === 1, 'the template');
  assert.equal(repeated.receiver.received[0]?.text, JSON.stringify({ text: HEAVY.name.repeat(200) }));
  await removed(bomb, repeated, normal);
});

test('a template that would not end falls back to the standard body', async () => {
  const slow = await hook({
    filter: 'change == "added"',
    format: 'template',
    template: { found: `\${${NESTED}}` },
  });
  const normal = await hook({ filter: 'change == "added"' });
  await push({ id: nextId(), ...HEAVY });
  await normal.receiver.until((all) => all.length === 1, 'the version');
  await slow.receiver.until((all) => all.length === 1, 'the standard body instead');
  assert.equal(slow.receiver.received[0]?.event.type, 'workflow_data_change');
  assert.ok(await until('the slow webhook reports its mistake', () => mistakeOf(slow)));
  await removed(slow, normal);
});

test('nested macros over literal lists delay neither other webhooks, nor a test, nor queue calls', async () => {
  const list = `[${'1,'.repeat(250)}2]`;
  const nested = `${list}.all(a, ${list}.all(b, ${list}.all(c, ${list}.all(d, a + b + c + d < 9))))`;
  const filtered = await hook({ filter: nested });
  const shaped = await hook({ format: 'template', template: { all: `\${${nested}}` } });
  const normal = await hook({ filter: 'change == "added"' });
  const asked = performance.now();
  const tested = await service.call('POST', `/v1/integrations/webhooks/${shaped.id}/test`);
  assert.equal(tested.status, 200, JSON.stringify(tested.body));
  await push({ id: nextId() });
  assert.ok(performance.now() - asked < 10_000, 'neither the test nor the push waits for a template');
  await normal.receiver.until((all) => all.length === 1, 'the version');
  await shaped.receiver.until((all) => all.length >= 2, 'the standard bodies of the test and of the version');
  assert.ok(await until('the filter reports its mistake', () => mistakeOf(filtered)));
  await removed(filtered, shaped, normal);
});

test('a filter of 4,096 characters works, and a longer one is refused', async () => {
  const part = 'record.price < 50 || ';
  const times = Math.floor((EXPRESSION_LIMIT - 20) / part.length);
  const filter = `${part.repeat(times)}change == "removed"`.padEnd(EXPRESSION_LIMIT);
  const longest = await hook({ filter });
  await push({ id: nextId(), price: 49 }, { id: nextId(), price: 51 });
  await longest.receiver.until((all) => all.length === 1, 'the match');
  assert.equal(longest.receiver.received[0]?.event.data.matched, 1);
  const { status, body } = await service.call('POST', '/v1/integrations/webhooks', {
    workflowId: 'shop',
    webhookUrl: longest.receiver.url,
    events: ['workflow_data_change'],
    filter: `${filter} `,
  });
  assert.equal(status, 400, JSON.stringify(body));
  await removed(longest);
});

test('deep nesting is refused with a sentence, or works', async () => {
  for (const filter of [
    `${'('.repeat(2_000)}true${')'.repeat(2_000)}`,
    `${'!'.repeat(4_000)}true`,
    `${'['.repeat(2_000)}${']'.repeat(2_000)} == []`,
    `${'-'.repeat(4_000)}1 < 2`,
    `record${'.a'.repeat(2_000)} == null`,
    `${'true ? '.repeat(500)}true${' : true'.repeat(500)}`,
  ]) {
    const { status, body } = await service.call('POST', '/v1/integrations/webhooks', {
      workflowId: 'shop',
      webhookUrl: 'http://127.0.0.1:9/deep',
      events: ['workflow_data_change'],
      filter,
    });
    assert.ok([200, 201, 400].includes(status), `${filter.slice(0, 20)}…: ${status} ${JSON.stringify(body)}`);
    if (status === 400) assert.match(JSON.stringify(body), /filter/);
    else await service.call('DELETE', `/v1/integrations/webhooks/${(body as { id: string }).id}`);
  }
});
