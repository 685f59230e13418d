/** Messages for people about hostile records: within every limit, and nothing of a record is interpreted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Marked } from 'marked';
import { type DefaultTreeAdapterTypes, parse, defaultTreeAdapter as tree } from 'parse5';
import {
  catalogSamples,
  changeSample,
  HOSTILE_TEXTS,
  hostileSamples,
  messageText,
  type Sample,
  type States,
} from '../../../test/support/messages/samples.ts';
import { FORMATS_FOR_PEOPLE, type FormatForPeople } from '../rule.ts';
import type { DiscordMessage } from './discord.ts';
import type { Letter } from './mail.ts';
import type { SlackMessage } from './slack.ts';
import type { TeamsMessage } from './teams.ts';

const WEBHOOKS = [
  { id: 'wh_1', name: 'Ops' },
  { id: 'wh_1', name: HOSTILE_TEXTS.join(' ').slice(0, 100) },
];

/** Makes every message about the samples, and returns those of a format. */
function messages<Message>(format: FormatForPeople, samples: readonly Sample[] = SAMPLES): Message[] {
  return samples.flatMap((sample) =>
    WEBHOOKS.map((webhook) => JSON.parse(messageText(format, sample, webhook)) as Message),
  );
}

const SAMPLES = [...catalogSamples(), ...hostileSamples()];

/** All strings in a value, with their keys. */
function* strings(value: unknown, key = ''): Generator<{ key: string; text: string }> {
  if (typeof value === 'string') yield { key, text: value };
  if (typeof value !== 'object' || value === null) return;
  for (const [name, one] of Object.entries(value)) yield* strings(one, name);
}

const FORBIDDEN = /[^\P{Cc}\n]|[\u00ad\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u;

function checkCharacters(message: unknown): void {
  for (const { text } of strings(message)) {
    assert.ok(text.isWellFormed(), 'no half of an emoji');
    assert.doesNotMatch(text, FORBIDDEN, 'no control and no bidi characters');
  }
}

function checkSlack({ text, blocks }: SlackMessage): void {
  assert.ok(blocks.length >= 1 && blocks.length <= 50);
  assert.ok(text.length >= 1 && text.length <= 3_000);
  assert.doesNotMatch(text, /[<>]|@(?!\u200b)/);
  let characters = 0;
  for (const block of blocks) {
    if (block.type === 'header') assert.ok(block.text.text.length >= 1 && block.text.text.length <= 150);
    for (const { key, text: part } of strings(block)) {
      if (key === 'type') continue;
      characters += part.length;
      assert.ok(part.length >= 1 && part.length <= 3_000, `${key}: ${part.length}`);
      if (key === 'url') assert.match(part, /^https?:\/\//);
    }
  }
  assert.ok(characters <= 12_000);
  // Only the address of our own page is text with markup.
  for (const { text: marked } of strings(blocks.filter(({ type }) => type === 'context')).filter(
    ({ text: one }) => one.includes('<http'),
  )) {
    assert.match(marked, /^<https:\/\/flowhook\.example\/ui\/webhooks\/[^<>|]*\|Change or pause it>$/);
  }
}

const markdown = new Marked({ gfm: true, breaks: true });

/** Discord's Markdown is close to that of GitHub, for which there is a parser. */
function checkDiscord({ embeds, allowed_mentions }: DiscordMessage): void {
  assert.deepEqual(allowed_mentions, { parse: [] });
  assert.ok(embeds.length >= 1 && embeds.length <= 10);
  let characters = 0;
  for (const { title = '', description = '', fields, footer, url } of embeds) {
    assert.ok(title.length <= 256 && description.length <= 4_096 && fields.length <= 25);
    if (url !== undefined) assert.match(url, /^https?:\/\//);
    characters += title.length + description.length + (footer?.text.length ?? 0);
    for (const { name, value } of fields) {
      assert.ok(name.length >= 1 && name.length <= 256 && value.length >= 1 && value.length <= 1_024);
      characters += name.length + value.length;
      checkMarkdown(name);
      checkMarkdown(value);
    }
    checkMarkdown(title);
    checkMarkdown(description);
  }
  assert.ok(characters <= 6_000, `${characters} characters`);
}

function checkMarkdown(text: string): void {
  const root = parse(markdown.parse(text, { async: false }));
  for (const { name, attributes } of elements(root)) {
    assert.match(name, /^(html|head|body|p|br|del|a|pre|code)$/, `<${name}> in ${text}`);
    // Discord does not link addresses of mail.
    if (name === 'a')
      assert.match(attributes.href ?? '', /^(https:\/\/(flowhook\.example|example\.org)\/|mailto:)/);
  }
  const ours = text.replace(/```[\s\S]*```|\[(Open|Change or pause this webhook)\]\([^)]*\)|~~/g, '');
  assert.doesNotMatch(ours.replace(/\\[\\*_~`|<>[\]()#:]/g, ''), /[*~`|<>[\]()#]|\b_|_\b|:\/\//, text);
}

function* elements(node: DefaultTreeAdapterTypes.Node): Generator<{
  name: string;
  attributes: Record<string, string>;
}> {
  if (tree.isElementNode(node)) {
    yield {
      name: node.tagName,
      attributes: Object.fromEntries(node.attrs.map(({ name, value }) => [name, value])),
    };
  }
  if ('childNodes' in node) for (const child of node.childNodes) yield* elements(child);
}

function checkTeams(message: TeamsMessage): void {
  assert.ok(Buffer.byteLength(JSON.stringify(message)) <= 28_000);
  for (const { key, text } of strings(message.attachments[0]?.content.body)) {
    if (key === 'url') assert.match(text, /^https?:\/\//);
    assert.doesNotMatch(text, /\{\{/, 'no function of cards');
  }
  // Markdown is interpreted in blocks of text; there are none.
  for (const { type } of message.attachments[0]?.content.body ?? []) assert.equal(type, 'RichTextBlock');
}

const ELEMENTS = /^(html|head|meta|title|style|body|table|tbody|tr|td|h1|h2|p|a|strong|span|del|ins|pre)$/;
const ATTRIBUTES =
  /^(style|class|role|width|cellpadding|cellspacing|colspan|valign|align|dir|href|lang|charset|name|content)$/;

function checkLetter({ subject, text, html }: Letter): void {
  assert.ok(subject.length >= 1 && subject.length <= 150);
  assert.doesNotMatch(subject, /[\r\n]/);
  assert.doesNotMatch(text, /\r/);
  assert.ok(Buffer.byteLength(html) <= 102_000);
  for (const { name, attributes } of elements(parse(html))) {
    assert.match(name, ELEMENTS);
    for (const [attribute, value] of Object.entries(attributes)) {
      assert.match(attribute, ATTRIBUTES);
      if (attribute === 'href') assert.match(value, /^https?:\/\//);
      if (attribute === 'style') assert.doesNotMatch(value, /url\(|expression|evil/);
    }
  }
}

const CHECKS = { slack: checkSlack, discord: checkDiscord, teams: checkTeams, mail: checkLetter };

for (const format of FORMATS_FOR_PEOPLE) {
  test(`${format}: hostile records, keys, logs, errors and names stay text, within all limits`, () => {
    const made = messages<never>(format);
    assert.ok(made.length > 100);
    for (const message of made) {
      checkCharacters(message);
      CHECKS[format](message);
    }
  });

  test(`${format}: any record makes a message within the limits`, () => {
    const text = fc.string({ unit: 'binary', maxLength: 300 });
    const record = fc.dictionary(text, fc.oneof(text, fc.double(), fc.constant(null), fc.array(text)));
    const side = fc.option(record, { nil: undefined });
    const states = fc.tuple(side, side).filter((one) => one[0] !== undefined || one[1] !== undefined);
    fc.assert(
      fc.property(fc.array(states, { minLength: 1, maxLength: 25 }), (records) => {
        const sample = changeSample('people', records as States[]);
        for (const message of messages<never>(format, [sample])) {
          checkCharacters(message);
          CHECKS[format](message);
        }
      }),
      { numRuns: 40 },
    );
  });
}

test('the text of a record arrives as it is, without what cannot be seen', () => {
  const text = '<b>1 & 2</b> *x* _y_ ~z~ `c` [l](https://a.example) @everyone {{DATE(x)}}';
  const sample = changeSample('people', [
    [
      { id: '1', note: 'was' },
      { id: '1', note: `${text}\u202e\u0007` },
    ],
  ]);
  const [webhook] = WEBHOOKS as [(typeof WEBHOOKS)[0]];
  const slack = [...strings(JSON.parse(messageText('slack', sample, webhook)))].map((one) => one.text);
  assert.ok(slack.includes(text));
  const teams = [...strings(JSON.parse(messageText('teams', sample, webhook)))].map((one) => one.text);
  assert.ok(teams.includes(text.replace('{{', '{\u200b{')));
  const { embeds } = JSON.parse(messageText('discord', sample, webhook)) as DiscordMessage;
  const value = embeds[0]?.fields.at(-1)?.value ?? '';
  const shown = parse(markdown.parse(value, { async: false }));
  assert.ok(textOf(shown).includes(text), textOf(shown));
  const letter = JSON.parse(messageText('mail', sample, webhook)) as Letter;
  assert.ok(letter.text.includes(text));
  assert.ok(textOf(parse(letter.html)).includes(text));
});

function textOf(node: DefaultTreeAdapterTypes.Node): string {
  if (tree.isTextNode(node)) return node.value;
  return 'childNodes' in node ? node.childNodes.map(textOf).join('') : '';
}
