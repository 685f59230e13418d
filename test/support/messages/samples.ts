/** Events that messages for people are made of, for tests and for pictures. The people and shops in them are fictional. */
import { EVENT_CATALOG } from '../../../src/model/event-catalog.ts';
import { shortened } from '../../../src/model/messages/notice-row.ts';
import { DEFAULT_RULE, type FormatForPeople } from '../../../src/model/rule.ts';
import { differenceOfValues, type ExactRecord } from '../../../src/model/same-json.ts';
import type { Selection } from '../../../src/model/selection.ts';
import { type ForPeople, shapedBody } from '../../../src/model/shape.ts';

export const PUBLIC_URL = 'https://flowhook.example';

/** An event, and what a filter has selected of it. */
export interface Sample {
  body: string;
  selection: Selection | null;
  log: readonly string[];
}

/** A record before and after; undefined if it does not exist. */
export type States = readonly [before: ExactRecord | undefined, after: ExactRecord | undefined];

/** The text that a webhook for people sends about a sample. */
export function messageText(format: FormatForPeople, sample: Sample, webhook: ForPeople['webhook']): string {
  const rule = { ...DEFAULT_RULE, format, timeZone: 'Europe/Zurich' } as const;
  const { body, selection, log } = sample;
  return shapedBody(rule, { body, publicUrl: PUBLIC_URL, webhook, log }, selection).body;
}

/** What a version of a workflow has changed, as the rule thread lists it. */
export function changeSample(
  workflowId: string,
  records: readonly States[],
  matched = records.length,
): Sample {
  const differences = records.map(([before, after]) => {
    const id = String((after ?? before)?.id);
    const difference = differenceOfValues({ id, before, after });
    return shortened({ ...difference, record: after ?? null, previous: before ?? null });
  });
  const body = eventText('workflow_data_change', {
    ids: { workflowId, jobId: 'job_01kadz8v3s7v0s8e1c3q5m2n4p' },
    data: {
      version: 17,
      previousVersion: 16,
      records: { total: 1_204, added: 0, changed: matched + 12, removed: 0 },
      changesUrl: `${PUBLIC_URL}/v1/workflows/shop/changes?since=16&until=17`,
    },
  });
  const selection = { matched, examined: matched + 12, differences, truncated: matched > records.length };
  return { body, selection, log: [] };
}

/** A stored event. */
export function eventText(type: string, { ids, data }: { ids: object; data: object }): string {
  return JSON.stringify({
    id: 'evt_01kadz8v3s7v0s8e1c3q5m2n4p',
    teamId: 'team_01kadz8v3s7v0s8e1c3q5m2n4p',
    type,
    eventType: type,
    timestamp: '2026-11-23T10:30:00.000Z',
    sequence: 42,
    ...ids,
    data,
  });
}

/** The example of every event type. */
export function catalogSamples(): Sample[] {
  return EVENT_CATALOG.map(({ example }) => ({ body: JSON.stringify(example), selection: null, log: [] }));
}

const ESCAPE = '\u001b';
/** Texts that a mail program, a chat or a terminal could take for something else than text. */
export const HOSTILE_TEXTS: readonly string[] = [
  '<script>alert(1)</script><img src=x onerror=alert(2)>',
  '"onmouseover="alert(3)" \'x\'',
  '&lt;b&gt; &amp; &#60;i&#62;',
  '*bold* _italic_ ~struck~ `code` **strong** __under__ ~~gone~~ ||spoiler||',
  '```\nfence\n```',
  '[a link](https://evil.example/phish) <https://evil.example|bank.example> https://evil.example',
  '<!channel> <!here> <@U0123456> <#C0123456> <!subteam^S1> @everyone @here <@123> <@&123> <#123>',
  '<t:1700000000:R> :skull: <:name:123456789012345678>',
  '<at>Everyone</at> {{DATE(2026-01-01T00:00:00Z, SHORT)}} {{TIME(2026-01-01T00:00:00Z)}} $' +
    '{secret} {{{{x',
  '# heading',
  '> quote',
  '- item',
  '+ item',
  '1. item',
  '-# small',
  'subject\r\nBcc: everyone@example.org\r\n\r\nbody',
  'invoice\u202egpj.exe \u2066hidden\u2069 \u200fright\u200e',
  `bell\u0007 null\u0000 ${ESCAPE}[31mred${ESCAPE}[0m \u009b31m back\b\b`,
  'zero\u200bwidth \ufeff soft\u00adhyphen tag\u{e0041}\u{e0042}',
  'line\u2028separator\u2029paragraph\u0085next\u000bvertical',
  'lone \ud83d surrogate \udc4b here',
  '\u0000\u200b\u202e',
  '',
  'h\u0301\u0302\u0303'.repeat(50),
];

/** Records that no message may be hurt by: each has markup in its title, its keys and its values. */
function hostileRecords(): States[] {
  const texts = HOSTILE_TEXTS.map((text, at): States => {
    const after = { id: `r${at} ${text}`, name: text, [`key ${text}`]: text, nested: { [text]: [text] } };
    return [{ ...after, [`key ${text}`]: 'before' }, after];
  });
  const emoji = '👩‍👩‍👧‍👦🇨🇭👍🏽';
  const fields = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`field ${at}`, `${emoji}${at}`]));
  const large = 'x'.repeat(1_048_576);
  const pairs = Array.from({ length: 12 }, (_, at): States => {
    const text = `${'a'.repeat(at)}${'👋🏿'.repeat(400)}`;
    return [{ id: text, title: text, text }, undefined];
  });
  const links = [
    'javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'https://bank.example@evil.example/',
    `https://example.org/")(onclick='x'<b>|*_\``,
    `https://example.org/${'y'.repeat(5_000)}`,
    'https:/\\evil.example',
    ' https://example.org',
  ].map((url, at): States => [undefined, { id: `link ${at}`, url, link: { href: url } }]);
  return [
    ...texts,
    [undefined, { id: 'many', name: emoji.repeat(60), ...fields }],
    [
      { id: 'large', name: large, text: large },
      { id: 'large', name: `${large}!`, text: `${large}!`, list: [large] },
    ],
    [
      { id: 'number', n: JSON.rawJSON('1'.repeat(5_000)) },
      { id: 'number', n: null },
    ],
    ...pairs,
    ...links,
  ];
}

/** Hostile records in groups of as many as a message lists, each about a hostile webhook. */
export function hostileSamples(): Sample[] {
  const records = hostileRecords();
  const samples: Sample[] = [];
  for (let from = 0; from < records.length; from += 6) {
    samples.push(changeSample('people', records.slice(from, from + 6), 100_000));
    samples.push(changeSample('people', records.slice(from, from + 1)));
  }
  for (const text of HOSTILE_TEXTS) {
    const ids = { workflowId: 'people', jobId: 'job_1' };
    const data = { state: 'failed', reason: 'error', error: text, attempt: 3 };
    const log = Array.from({ length: 40 }, () => `${text}${text.repeat(30)}`);
    samples.push({ body: eventText('workflow_failed', { ids, data }), selection: null, log });
    const failing = {
      webhookId: text,
      name: text,
      url: text,
      since: text,
      failures: 3,
      lastError: text,
      retriesAt: text,
    };
    samples.push({
      body: eventText('webhook_failing', { ids: {}, data: failing }),
      selection: null,
      log: [],
    });
    samples.push({
      body: eventText(`odd ${text}`, { ids: {}, data: { [text]: text } }),
      selection: null,
      log: [],
    });
  }
  samples.push(digestSample());
  return samples;
}

/** A digest of more workflows, records and events than a message lists, with hostile titles. */
function digestSample(): Sample {
  const workflows = Array.from({ length: 30 }, (_, at) => ({
    workflowId: `workflow-${at}`,
    version: 2,
    matched: 90,
    records: 90,
    differences: HOSTILE_TEXTS.map((title, place) => ({
      type: 'changed',
      id: `r${place}`,
      title,
      url: title,
      fields: [{ key: title, value: title, previousValue: 'before' }],
    })),
    truncated: true,
  }));
  const events = HOSTILE_TEXTS.map((summary) => ({
    id: 'evt_2',
    type: 'workflow_failed',
    timestamp: '2026-11-23T10:30:00.000Z',
    workflowId: 'people',
    jobId: 'job_2',
    summary,
  }));
  const times = { from: '2026-11-23T09:30:00.000Z', until: '2026-11-23T10:30:00.000Z' };
  const data = {
    webhookId: 'wh_1',
    ...times,
    matched: 2_700,
    records: 2_700,
    workflows,
    events,
    more: 1_000,
  };
  return { body: eventText('webhook_digest', { ids: {}, data }), selection: null, log: [] };
}
