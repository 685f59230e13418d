/** Tests that chat messages are reduced to what they say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Chat, messageOf, type Part } from './message.ts';

/** The text of each part, with `*bold*`, `~struck~` and `<link>` around what has that style. */
function lines(body: unknown): string[] {
  const message = messageOf(JSON.stringify(body));
  assert.ok(message !== undefined && 'parts' in message);
  return message.parts.map((part) => `${part.kind}: ${wordsOf(part)}`);
}

function wordsOf(part: Part): string {
  if (part.kind === 'code') return part.text;
  if (part.kind === 'line') return '';
  return part.spans
    .map(({ text, isBold, isStruck, url }) => {
      const styled = isStruck ? `~${text}~` : isBold ? `*${text}*` : text;
      return url === undefined ? styled : `<${url} ${styled}>`;
    })
    .join('');
}

test('recognizes messages by their form, and leaves other bodies alone', () => {
  const letter = { subject: 'A', text: 'a', html: '<p>a</p>' };
  assert.deepEqual(messageOf(JSON.stringify(letter)), { medium: 'mail', letter });
  const mediumOf = (body: unknown): Chat | 'mail' | undefined => messageOf(JSON.stringify(body))?.medium;
  assert.equal(mediumOf({ text: 'a', blocks: [{ type: 'divider' }] }), 'slack');
  assert.equal(mediumOf({ embeds: [{ title: 'a' }] }), 'discord');
  assert.equal(mediumOf({ type: 'workflow_finished', data: { subject: 'a' } }), undefined);
  assert.equal(mediumOf({ blocks: [] }), undefined);
  assert.equal(mediumOf([1, 2]), undefined);
  assert.equal(messageOf('{"blocks": ['), undefined);
});

test('says what blocks of Slack say, as texts without markup', () => {
  const text = (value: string, style?: object) => ({ type: 'text', text: value, ...(style && { style }) });
  assert.deepEqual(
    lines({
      blocks: [
        { type: 'header', text: { type: 'plain_text', text: '*shop*: 1 change' } },
        {
          type: 'rich_text',
          elements: [
            {
              type: 'rich_text_section',
              elements: [
                { type: 'link', url: 'https://a.example/', text: 'Lamp', style: { bold: true } },
                text(' changed'),
              ],
            },
            {
              type: 'rich_text_list',
              elements: [
                {
                  type: 'rich_text_section',
                  elements: [text('price: '), text('52', { strike: true }), text(' → 47')],
                },
              ],
            },
            { type: 'rich_text_preformatted', elements: [text('one\n'), text('two\n')] },
          ],
        },
        { type: 'section', text: { type: 'mrkdwn', text: '*Bold* &lt;b&gt; <https://b.example|there>' } },
        {
          type: 'context',
          elements: [
            { type: 'plain_text', text: 'Sent by a webhook' },
            { type: 'mrkdwn', text: '<https://c.example|Change it>' },
          ],
        },
      ],
    }),
    [
      'title: *shop*: 1 change',
      'text: <https://a.example/ *Lamp*> changed',
      'item: price: ~52~ → 47',
      'code: one\ntwo',
      'text: *Bold* <b> <https://b.example there>',
      'small: Sent by a webhook · <https://c.example Change it>',
    ],
  );
});

test('says what embeds of Discord say, without the escapes of Markdown', () => {
  assert.deepEqual(
    lines({
      embeds: [
        {
          title: 'shop\\: 1 change',
          url: 'https://a.example/',
          description: 'One record changed\n```\nline 1\nline 2\n```\n[Pause it](https://b.example/)',
          fields: [
            { name: 'Workflow', value: 'shop', inline: true },
            { name: 'Lamp · changed', value: 'price\\_a: ~~52~~ → 47\n\u200b', inline: false },
            { name: '\u200b', value: 'and 41 more', inline: false },
          ],
          footer: { text: 'Sent by **a** webhook' },
        },
      ],
    }),
    [
      'title: <https://a.example/ shop: 1 change>',
      'text: One record changed',
      'code: line 1\nline 2',
      'text: <https://b.example/ Pause it>',
      'text: *Workflow*: shop',
      'text: *Lamp · changed*',
      'text: price_a: ~52~ → 47\n',
      'text: and 41 more',
      'small: Sent by **a** webhook',
    ],
  );
});

test('says what Adaptive Cards of Teams say, and never links to other schemes', () => {
  const block = (inlines: unknown[], more: object = {}) => ({ type: 'RichTextBlock', inlines, ...more });
  assert.deepEqual(
    lines({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          content: {
            type: 'AdaptiveCard',
            body: [
              block([{ type: 'TextRun', text: 'shop', size: 'Large', weight: 'Bolder' }]),
              block(['price: ', { type: 'TextRun', text: '52', strikethrough: true }, ' → 47']),
              block([{ type: 'TextRun', text: 'line 1', fontType: 'Monospace', size: 'Small' }]),
              block([{ type: 'TextRun', text: 'line 2', fontType: 'Monospace', size: 'Small' }]),
              block([{ type: 'TextRun', text: 'Sent by a webhook', size: 'Small' }], { separator: true }),
              { type: 'TextBlock', text: '**A** [b](javascript:alert)' },
            ],
            actions: [{ type: 'Action.OpenUrl', title: 'Open', url: 'https://a.example/' }],
          },
        },
      ],
    }),
    [
      'title: *shop*',
      'text: price: ~52~ → 47',
      'code: line 1\nline 2',
      'line: ',
      'small: Sent by a webhook',
      'text: *A* [b](javascript:alert)',
      'text: <https://a.example/ Open>',
    ],
  );
});
