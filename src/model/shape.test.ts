/** The bodies that webhooks with rules receive. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mediaTypeOf } from './delivery.ts';
import { EVENT_CATALOG } from './event-catalog.ts';
import { DEFAULT_RULE, type Rule } from './rule.ts';
import { ruleFrom } from './rule-fields.ts';
import type { Selection } from './selection.ts';
import { shapedBody } from './shape.ts';

const PUBLIC_URL = 'https://flowhook.example';
const FILTER = 'record.price < previous.price && "price" in changed';
const BODY = JSON.stringify({
  id: 'evt_1',
  teamId: 'team_1',
  type: 'workflow_data_change',
  eventType: 'workflow_data_change',
  timestamp: '2026-11-23T10:30:00.000Z',
  sequence: 42,
  workflowId: 'shop',
  jobId: 'job_1',
  finishedAt: '2026-11-23T10:30:00.000Z',
  data: {
    version: 2,
    records: { total: 2, added: 0, changed: 2, removed: 0 },
    dataUrl: `${PUBLIC_URL}/v1/workflows/shop/data`,
    differences: [
      { type: 'changed', id: '1', fields: [{ key: 'price', value: 47, previousValue: 50 }] },
      { type: 'changed', id: '2', fields: [{ key: 'price', value: 60, previousValue: 50 }] },
    ],
    truncated: false,
    changesUrl: `${PUBLIC_URL}/v1/workflows/shop/changes?since=1&until=2`,
  },
});
const EVENT = { body: BODY, publicUrl: PUBLIC_URL };
const SELECTION: Selection = {
  matched: 1,
  examined: 2,
  differences: [
    {
      type: 'changed',
      id: '1',
      fields: [{ key: 'price', value: JSON.rawJSON('47.000000000000000001'), previousValue: 50 }],
      record: { id: '1', price: JSON.rawJSON('47.000000000000000001'), title: 'Red "phone"' },
      previous: { id: '1', price: 50, title: 'Red "phone"' },
    },
  ],
  truncated: false,
};

function shaped(
  rule: Rule,
  selection: Selection | null = SELECTION,
  messageId?: string,
): Record<string, unknown> {
  const { body, mistake } = shapedBody(rule, EVENT, selection, messageId);
  assert.equal(mistake, null);
  return JSON.parse(body);
}

function template(value: unknown, selection: Selection | null = SELECTION): unknown {
  const { body, mistake } = shapedBody(ruleFrom({ format: 'template', template: value }), EVENT, selection);
  assert.equal(mistake, null);
  return JSON.parse(body);
}

test('the standard body without a selection is the stored text, to the byte', () => {
  const odd = { body: '{"id":"evt_1",  "data":{"n":1.0}}', publicUrl: PUBLIC_URL };
  assert.equal(shapedBody({ ...DEFAULT_RULE, filter: 'data.n == 1' }, odd, null).body, odd.body);
});

test('the standard body holds the differences that match, how many there are, and where to read them', () => {
  const { body } = shapedBody(ruleFrom({ filter: FILTER }), EVENT, SELECTION);
  assert.deepEqual(Object.keys(JSON.parse(body).data), [
    'version',
    'records',
    'matched',
    'dataUrl',
    'differences',
    'truncated',
    'changesUrl',
  ]);
  const { data, ...event } = JSON.parse(body);
  const { data: _stored, ...stored } = JSON.parse(BODY);
  assert.deepEqual(event, stored);
  assert.equal(data.matched, 1);
  assert.deepEqual(data.records, { total: 2, added: 0, changed: 2, removed: 0 });
  assert.deepEqual(Object.keys(data.differences[0]), ['type', 'id', 'fields']);
  const url = new URL(data.changesUrl);
  assert.equal(url.searchParams.get('filter'), FILTER);
  assert.equal(url.searchParams.get('until'), '2');
  assert.match(body, /"value":47\.000000000000000001,/);
});

test('the message after cooldowns has an id of its own and says why it is sent', () => {
  const { id, sequence, data } = shaped(ruleFrom({ filter: FILTER }), SELECTION, 'evt_2') as {
    id: string;
    sequence: number;
    data: Record<string, unknown>;
  };
  assert.deepEqual([id, sequence, data.cooldownEnded, data.matched], ['evt_2', 42, true, 1]);
  assert.equal(shaped(ruleFrom({ format: 'cloudevents' }), SELECTION, 'evt_2').id, 'evt_2');
});

/** The rules of CloudEvents 1.0.2 for an event in structured mode. */
function checkCloudEvent(event: Record<string, unknown>): void {
  for (const name of ['id', 'source', 'specversion', 'type']) {
    assert.ok(typeof event[name] === 'string' && event[name] !== '', `${name} is required and not empty`);
  }
  assert.equal(event.specversion, '1.0');
  for (const [name, value] of Object.entries(event)) {
    assert.match(name, /^[a-z0-9]{1,20}$/, 'names have lowercase letters and digits');
    if (name === 'data') continue;
    const isInteger = Number.isInteger(value) && Math.abs(value as number) < 2 ** 31;
    assert.ok(
      typeof value === 'boolean' || isInteger || (typeof value === 'string' && value !== ''),
      `${name} has a type of CloudEvents`,
    );
  }
  assert.ok(URL.canParse(event.source as string), 'source is a URI');
  assert.match(
    event.time as string,
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
    'time is RFC 3339',
  );
  assert.match(event.datacontenttype as string, /^[\w.+-]+\/[\w.+-]+$/, 'datacontenttype is a media type');
  assert.ok(!('data_base64' in event && 'data' in event));
}

test('every event is a valid CloudEvent', () => {
  const rule = ruleFrom({ format: 'cloudevents' });
  for (const { example } of EVENT_CATALOG) {
    const { body, mistake } = shapedBody(
      rule,
      { body: JSON.stringify(example), publicUrl: PUBLIC_URL },
      null,
    );
    assert.equal(mistake, null);
    const event = JSON.parse(body);
    checkCloudEvent(event);
    assert.equal(mediaTypeOf(body), 'application/cloudevents+json');
    assert.equal(mediaTypeOf(JSON.stringify(example)), 'application/json');
    assert.equal(event.id, example.id);
    assert.equal(event.type, `flowhook.${example.type}`);
    assert.deepEqual(event.data, example.data);
  }
});

test('a CloudEvent names its workflow, job and position', () => {
  const event = shaped(ruleFrom({ format: 'cloudevents', filter: FILTER }));
  checkCloudEvent(event);
  const { data, ...attributes } = event;
  assert.deepEqual(attributes, {
    specversion: '1.0',
    id: 'evt_1',
    source: `${PUBLIC_URL}/v1/workflows/shop`,
    type: 'flowhook.workflow_data_change',
    subject: 'job_1',
    time: '2026-11-23T10:30:00.000Z',
    datacontenttype: 'application/json',
    teamid: 'team_1',
    workflowid: 'shop',
    jobid: 'job_1',
    sequence: '0000000000000042',
  });
  assert.equal((data as { matched: number }).matched, 1);
});

test('a string that is only an expression becomes its value, others stay text', () => {
  const made = template({
    text: `\${record.title} costs \${record.price}, was \${previous.price}\${record.missing}`,
    price: `\${previous.price}`,
    tags: [`\${changed}`, 5, null, true],
    record: `\${previous}`,
    missing: `\${record.missing}`,
    all: `\${differences.map(d, d.change + " " + d.id).join(", ")}`,
    braces: `\${{"a": "}"}}`,
    literal: '$${record.title} and $5',
    when: `\${timestamp(event.timestamp)}`,
    nested: { event: `\${event.type}`, matched: `\${data.matched}` },
  });
  assert.deepEqual(made, {
    text: 'Red "phone" costs 47.000000000000000001, was 50',
    price: 50,
    tags: [['price'], 5, null, true],
    record: { id: '1', price: 50, title: 'Red "phone"' },
    missing: null,
    all: 'changed 1',
    braces: { a: '}' },
    literal: `\${record.title} and $5`,
    when: '2026-11-23T10:30:00.000Z',
    nested: { event: 'workflow_data_change', matched: 1 },
  });
});

test('a template keeps the digits of numbers', () => {
  const rule = ruleFrom({ format: 'template', template: `\${record.price}` });
  assert.equal(shapedBody(rule, EVENT, SELECTION).body, '47.000000000000000001');
});

test('a template without a selection reads the differences in the event', () => {
  assert.deepEqual(
    template(
      [`\${id}`, `\${change}`, `\${record.price}`, `\${previous.price}`, `\${size(differences)}`],
      null,
    ),
    ['1', 'changed', 47, 50, 2],
  );
});

test('an event without differences has no record', () => {
  const body = JSON.stringify({
    ...JSON.parse(BODY),
    type: 'workflow_failed',
    data: { error: 'Exit code 7' },
  });
  const rule = ruleFrom({
    format: 'template',
    template: { error: `\${data.error}`, id: `\${id}`, all: `\${differences}`, changed: `\${changed}` },
  });
  assert.equal(
    shapedBody(rule, { body, publicUrl: PUBLIC_URL }, null).body,
    '{"error":"Exit code 7","id":null,"all":[],"changed":[]}',
  );
});

test('a template that cannot be evaluated, or makes too much, falls back to the standard body', () => {
  const rule = ruleFrom({ format: 'template', template: { sum: `\${record.title + 1}` } });
  const { body, mistake } = shapedBody(rule, EVENT, SELECTION);
  assert.match(mistake ?? '', /^"\+" cannot be applied to a string .*, in `record\.title \+ 1`$/);
  assert.deepEqual(JSON.parse(body).data.matched, 1);

  const long = { type: 'added' as const, id: '1', fields: [], record: { text: 'x'.repeat(100_000) } };
  const large = ruleFrom({
    format: 'template',
    template: [`\${record.text}`, `\${record.text}`, `\${record.text}`],
  });
  const result = shapedBody(large, EVENT, { ...SELECTION, differences: [long] });
  assert.equal(result.mistake, 'The template makes a body of more than 256 KiB');
  assert.equal(JSON.parse(result.body).id, 'evt_1');
});

test('the body instead of a template lists no record that is too large for it', () => {
  const value = 'x'.repeat(20_000);
  const large: Selection = {
    matched: 2,
    examined: 2,
    differences: [
      { type: 'added', id: '1', fields: [{ key: 'text', value }], record: { id: '1', text: value } },
    ],
    truncated: true,
  };
  const rule = ruleFrom({ format: 'template', template: `\${record.text - 1}` });
  const { body, mistake } = shapedBody(rule, EVENT, large);
  assert.ok(mistake !== null);
  const { data } = JSON.parse(body);
  assert.deepEqual([data.matched, data.differences, data.truncated], [2, [], true]);
});

test('the expressions of a template share their steps', () => {
  const slow = `\${${'[1,2,3,4,5,6,7,8,9,10].all(a, '.repeat(4)}a > 0${')'.repeat(4)}}`;
  assert.equal(template(slow), true);
  const rule = ruleFrom({ format: 'template', template: Array(100).fill(slow) });
  assert.match(
    shapedBody(rule, EVENT, SELECTION).mistake ?? '',
    /^The evaluation takes more than 200,000 steps/,
  );
});

test('a template never writes a record a thousand times', () => {
  const record = { list: Array.from({ length: 10_000 }, (_, at) => at) };
  const differences = [{ type: 'added' as const, id: '1', fields: [], record }];
  for (const value of [
    Array(200).fill(`\${record}`),
    `\${[${Array(500).fill('record').join()}]}`,
    `\${record}`.repeat(200),
  ]) {
    const rule = ruleFrom({ format: 'template', template: value });
    const { mistake } = shapedBody(rule, EVENT, { ...SELECTION, differences });
    assert.match(mistake ?? '', /^The evaluation takes more than 200,000 steps/);
  }
});

test('a template is checked and bounded when it is saved', () => {
  const refused = (value: unknown, sentence: RegExp) =>
    assert.throws(
      () => ruleFrom({ format: 'template', template: value }),
      (error: Error) => sentence.test(error.message),
    );
  refused({ a: 'x'.repeat(17_000) }, /at most 16 KiB/);
  refused(Array(201).fill(`\${id}`), /at most 200 expressions/);
  refused(JSON.parse(`${'['.repeat(30)}1${']'.repeat(30)}`), /at most 20 levels/);
  refused({ text: [`\${recrd.x}`] }, /did you mean "record"\?, in \$\{recrd\.x\} of text\[0\]$/);
  refused(`\${`, /has no closing \}/);
  refused(`\${}`, /The expression is empty/);
  refused(`\${1 + "a"}`, /"\+" cannot be applied to a number and a text/);
});

test('a template that another version of this program has saved may be invalid: the standard body is sent', () => {
  const rule: Rule = { ...DEFAULT_RULE, format: 'template', template: { text: `\${price.of}` } };
  const event = { body: '{"id":"evt_1","type":"webhook_test","data":{}}', publicUrl: '' };
  const { body, mistake } = shapedBody(rule, event, null);
  assert.equal(body, event.body);
  assert.match(mistake ?? '', /unknown/);
});
