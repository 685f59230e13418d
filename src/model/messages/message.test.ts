/** Messages for people: what they say, in every format. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventText, PUBLIC_URL } from '../../../test/support/messages/samples.ts';
import { EVENT_CATALOG } from '../event-catalog.ts';
import { DEFAULT_RULE, FORMATS_FOR_PEOPLE } from '../rule.ts';
import { ruleFrom } from '../rule-fields.ts';
import type { Selection } from '../selection.ts';
import { type ForPeople, shapedBody } from '../shape.ts';
import type { Letter } from './mail.ts';
import { noticeOf } from './notice-of.ts';

const OPS: ForPeople = { webhook: { id: 'wh_1', name: 'Ops' }, log: [] };

function event(type: string, data: object, ids: object = { workflowId: 'people', jobId: 'job_1' }): string {
  return eventText(type, { ids, data });
}

const published = EVENT_CATALOG.find(({ type }) => type === 'workflow_data_change')?.example.data as object;
const CHANGE = event('workflow_data_change', {
  ...published,
  records: { total: 120, added: 1, changed: 2, removed: 0 },
  truncated: true,
});

function notice(body: string, selection: Selection | null = null, people: ForPeople = OPS) {
  return noticeOf({ body, selection, publicUrl: PUBLIC_URL, timeZone: 'Europe/Zurich', ...people });
}

function letter(body: string, selection: Selection | null = null, people: ForPeople = OPS): Letter {
  const rule = { ...DEFAULT_RULE, format: 'mail', timeZone: 'Europe/Zurich' } as const;
  const shaped = shapedBody(rule, { body, publicUrl: PUBLIC_URL, ...people }, selection);
  assert.equal(shaped.mistake, null);
  return JSON.parse(shaped.body);
}

test('a change says how many records changed and how, with the time in the zone', () => {
  const told = notice(CHANGE);
  assert.equal(told.title, 'people: 1 record added, 2 changed');
  assert.equal(told.tone, 'change');
  assert.equal(told.url, `${PUBLIC_URL}/ui/workflows/people/changes?version=17`);
  assert.deepEqual(told.facts, [
    { name: 'Workflow', value: 'people' },
    { name: 'Version', value: '17 (120 records)' },
    { name: 'Time', value: '23 Nov 2026, 11:30 CET' },
  ]);
  assert.deepEqual(told.groups, [
    {
      title: null,
      rows: [
        {
          change: 'changed',
          title: '1',
          url: `${PUBLIC_URL}/ui/workflows/people/data?q=1`,
          fields: [{ key: 'email', before: 'ada@example.org', after: 'ada@example.com' }],
          moreFields: 0,
        },
        {
          change: 'added',
          title: 'Grace Hopper',
          url: `${PUBLIC_URL}/ui/workflows/people/data?q=2`,
          fields: [],
          moreFields: 0,
        },
      ],
      more: 1,
    },
  ]);
  assert.equal(told.footer, 'Sent by Flowhook for the webhook “Ops”.');
  assert.equal(told.footerUrl, `${PUBLIC_URL}/ui/webhooks/wh_1`);
});

test('the title of a message about one record names the record', () => {
  const differences = [
    { type: 'changed' as const, id: '1', fields: [], title: 'Ada', url: 'https://example.org/ada' },
  ];
  const told = notice(CHANGE, { matched: 1, examined: 3, differences, truncated: false });
  assert.equal(told.title, 'people: Ada changed');
  assert.equal(told.summary, '1 of 3 differences match the filter.');
  assert.equal(told.groups[0]?.rows[0]?.url, 'https://example.org/ada');
});

test('a title leads to the address of its record, and otherwise to the page where the record is found', () => {
  const fields = [
    { key: 'name', value: 'Phone' },
    { key: 'url', value: 'https://shop.example/1' },
    { key: 'price', value: 5 },
  ];
  const previous = fields.map(({ key, value }) => ({ key, previousValue: value }));
  const rowsOf = (differences: Selection['differences']) =>
    notice(CHANGE, { matched: 3, examined: 3, differences, truncated: false }).groups[0]?.rows ?? [];
  const [added, removed, plain, gone] = rowsOf([
    { type: 'added', id: '1', fields },
    { type: 'removed', id: '1', fields: previous },
    { type: 'changed', id: 'a (b)', fields: [] },
    { type: 'removed', id: '2', fields: [] },
  ]);
  assert.equal(added?.url, 'https://shop.example/1');
  assert.deepEqual(added?.fields, [{ key: 'price', before: null, after: '5' }], 'not what the title says');
  assert.deepEqual([removed?.url, removed?.title], ['https://shop.example/1', 'Phone']);
  assert.equal(plain?.url, `${PUBLIC_URL}/ui/workflows/people/data?q=a%20%28b%29`);
  assert.equal(gone?.url, `${PUBLIC_URL}/ui/workflows/people/changes?version=17`);
});

test('two long texts are shown from where they differ', () => {
  const start = 'The same long beginning. '.repeat(40);
  const field = { key: 'text', previousValue: `${start}It was green.`, value: `${start}It is blue.` };
  const differences = [{ type: 'changed' as const, id: '1', fields: [field] }];
  const told = notice(CHANGE, { matched: 1, examined: 1, differences, truncated: false });
  const [shown] = told.groups[0]?.rows[0]?.fields ?? [];
  assert.match(shown?.before ?? '', /^…[\s\S]{30,45}It was green\.$/);
  assert.match(shown?.after ?? '', /^…[\s\S]{30,45}It is blue\.$/);
});

test('at most 20 records are listed, and how many more there are', () => {
  const differences = Array.from({ length: 30 }, (_, at) => ({
    type: 'added' as const,
    id: `r${at}`,
    fields: [],
  }));
  const told = notice(CHANGE, { matched: 61, examined: 90, differences, truncated: true });
  assert.equal(told.title, 'people: 61 records match');
  assert.deepEqual(
    told.groups.map(({ rows, more }) => [rows.length, more]),
    [[20, 41]],
  );
  assert.match(
    letter(CHANGE, { matched: 61, examined: 90, differences, truncated: true }).text,
    /\nand 41 more\n/,
  );
});

test('a failed job shows why, and the last lines of its log', () => {
  const body = event('workflow_failed', {
    state: 'failed',
    reason: 'invalid_record',
    error: 'Exit code 7',
    attempt: 3,
  });
  const told = notice(body, null, { ...OPS, log: Array.from({ length: 20 }, (_, at) => `line ${at}`) });
  assert.equal(told.title, 'people failed');
  assert.equal(told.tone, 'failure');
  assert.equal(told.summary, 'Exit code 7');
  assert.equal(told.url, `${PUBLIC_URL}/ui/runs/job_1`);
  assert.deepEqual(told.facts.slice(1, 3), [
    { name: 'Reason', value: 'invalid record' },
    { name: 'Attempts', value: '3' },
  ]);
  assert.deepEqual([told.log?.length, told.log?.[0], told.log?.at(-1)], [15, 'line 5', 'line 19']);
});

test('a stale workflow shows since when and how its last run ended, and that it is fresh again', () => {
  const stale = event('workflow_stale', {
    workflowId: 'people',
    reason: 'No run has succeeded for 2 days',
    waitingSince: '2026-01-01T00:00:00Z',
    lastJob: { id: 'job_1', state: 'failed', error: 'Exit code 7' },
  });
  const told = notice(stale);
  assert.deepEqual([told.title, told.tone], ['people is stale', 'warning']);
  assert.equal(told.summary, 'No run has succeeded for 2 days');
  assert.equal(told.url, `${PUBLIC_URL}/ui/workflows/people`);
  assert.deepEqual(told.facts.slice(1, 3), [
    { name: 'Since', value: '1 Jan 2026, 01:00 CET' },
    { name: 'Last run', value: 'failed: Exit code 7' },
  ]);
  const recovered = notice(
    event('workflow_recovered', { state: 'finished', staleSince: '2026-01-01T00:00:00Z' }),
  );
  assert.equal(recovered.title, 'people is fresh again');
  assert.deepEqual(recovered.facts[1], { name: 'Stale since', value: '1 Jan 2026, 01:00 CET' });
});

test('a webhook that fails or is paused is named by its host, because the paths of chat webhooks are secrets', () => {
  const url = 'https://hooks.slack.com/services/T1/B1/secret';
  const paused = event('webhook_paused', {
    webhookId: 'wh_2',
    url,
    pausedAt: '2026-01-01T00:00:00Z',
    reason: 'Why',
  });
  const failing = event('webhook_failing', {
    webhookId: 'wh_2',
    name: 'Shop',
    url: 'mailto:ops@example.org',
    since: '2026-01-01T00:00:00Z',
    failures: 12,
    lastError: '451 Try later',
    retriesAt: '2026-01-01T01:00:00Z',
  });
  assert.equal(notice(paused).title, 'The webhook hooks.slack.com is paused');
  assert.doesNotMatch(JSON.stringify(notice(paused)), /secret/);
  const told = notice(failing);
  assert.equal(told.title, 'The webhook Shop is failing');
  assert.equal(told.summary, '451 Try later');
  assert.deepEqual(told.facts.slice(0, 4), [
    { name: 'Destination', value: 'ops@example.org' },
    { name: 'Since', value: '1 Jan 2026, 01:00 CET' },
    { name: 'Failed attempts', value: '12' },
    { name: 'Next attempt', value: '1 Jan 2026, 02:00 CET' },
  ]);
});

test('a digest lists the records of its workflows and its events, each with a fair share of the rows', () => {
  const workflow = (workflowId: string, records: number) => ({
    workflowId,
    version: 2,
    matched: records,
    records,
    differences: Array.from({ length: Math.min(30, records) }, (_, at) => ({
      type: 'changed',
      id: `${workflowId} ${at}`,
      title: `The ${at}`,
      url: null,
      fields: at === 0 ? [] : [{ key: 'n', value: 2, previousValue: 1 }],
    })),
    truncated: records > 30,
  });
  const failed = {
    id: 'evt_2',
    type: 'workflow_failed',
    timestamp: '',
    workflowId: 'a',
    jobId: 'job_2',
    summary: 'a failed',
  };
  const body = event(
    'webhook_digest',
    {
      webhookId: 'wh_1',
      from: '2026-11-23T09:00:00Z',
      until: '2026-11-23T10:00:00Z',
      matched: 90,
      records: 63,
      workflows: [workflow('a', 60), workflow('b', 3)],
      events: [failed],
      more: 4,
    },
    {},
  );
  const told = notice(body);
  assert.equal(told.title, '63 records and 5 events in 2 workflows in this digest');
  assert.equal(told.tone, 'failure');
  assert.equal(told.summary, '90 matches from 23 Nov 2026, 10:00 CET to 23 Nov 2026, 11:00 CET.');
  assert.deepEqual(
    told.groups.map(({ title, rows, more }) => [title, rows.length, more]),
    [
      ['a: 60 records', 16, 44],
      ['b: 3 records', 3, 0],
      ['5 events', 1, 4],
    ],
  );
  assert.match(letter(body).text, /\* The 0 \(as before\)/);
  for (const format of FORMATS_FOR_PEOPLE) {
    const shaped = shapedBody({ ...DEFAULT_RULE, format }, { body, publicUrl: PUBLIC_URL, ...OPS }, null);
    assert.match(shaped.body, /a failed/);
  }
});

test('an event of a type without words lists its values', () => {
  const told = notice(event('workflow_frozen', { hours: 3, since: 'yesterday', list: [1] }));
  assert.equal(told.title, 'people: workflow frozen');
  assert.deepEqual(told.facts.slice(0, 2), [
    { name: 'hours', value: '3' },
    { name: 'since', value: 'yesterday' },
  ]);
});

test('a letter has the same facts in its text and its HTML', () => {
  const { subject, text, html } = letter(CHANGE);
  assert.equal(subject, 'people: 1 record added, 2 changed');
  for (const part of [
    'Grace Hopper',
    'ada@example.org',
    '23 Nov 2026, 11:30 CET',
    'and 1 more',
    'for the webhook “Ops”',
  ]) {
    assert.ok(text.includes(part) && html.includes(part), part);
  }
  assert.match(html, /<del[^>]*>ada@example\.org<\/del>/);
  assert.match(html, /prefers-color-scheme: dark/);
  assert.doesNotMatch(html, /<img|<link|<script|url\(/);
});

test('an unknown zone is replaced by UTC', () => {
  const told = noticeOf({
    body: CHANGE,
    selection: null,
    publicUrl: PUBLIC_URL,
    timeZone: 'Mars/Base',
    ...OPS,
  });
  assert.equal(told.facts.at(-1)?.value, '23 Nov 2026, 10:30 UTC');
});

test('a rule for people that is tried names no webhook', () => {
  const { body } = shapedBody(ruleFrom({ format: 'slack' }), { body: CHANGE, publicUrl: PUBLIC_URL }, null);
  assert.match(body, /Sent by Flowhook\./);
  assert.doesNotMatch(body, /ui\/webhooks/);
});
