/** Payloads of chats against what their makers publish: the types of Slack and Discord, and the library of Adaptive Cards. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type * as Cards from 'adaptivecards';
import {
  catalogSamples,
  changeSample,
  hostileSamples,
  messageText,
  type Sample,
} from '../../../test/support/messages/samples.ts';
import type { FormatForPeople } from '../rule.ts';
import type { TeamsMessage } from './teams.ts';

// The library's modules cannot be loaded by Node, but its bundle can.
const cards = createRequire(import.meta.url)('adaptivecards/dist/adaptivecards.js') as typeof Cards;
const ROOT = join(import.meta.dirname, '../../..');
const OPS = { id: 'wh_1', name: 'Ops' };
const SAMPLES: readonly Sample[] = [
  ...catalogSamples(),
  changeSample(
    'shop',
    [
      [
        { id: '1', name: 'Phone', price: 50 },
        { id: '1', name: 'Phone', price: 47 },
      ],
    ],
    42,
  ),
  ...hostileSamples(),
];

function texts(format: FormatForPeople): string[] {
  return SAMPLES.map((sample) => messageText(format, sample, OPS));
}

test('the compiler accepts every payload as what the types of Slack and Discord describe', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-payloads-'));
  t.after(() => rm(directory, { recursive: true }));
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const literals = (format: FormatForPeople, type: string) =>
    texts(format).map((text, at) => `export const ${format}${at}: ${type} = ${text};\n`);
  const slack = `import type { KnownBlock } from '@slack/types';
interface Payload {
  text: string;
  mrkdwn: boolean;
  blocks: KnownBlock[];
  unfurl_links: boolean;
  unfurl_media: boolean;
}
`;
  const discord = `import type { RESTPostAPIWebhookWithTokenJSONBody as Payload } from 'discord-api-types/v10';\n`;
  await writeFile(join(directory, 'slack.ts'), slack + literals('slack', 'Payload').join(''));
  await writeFile(join(directory, 'discord.ts'), discord + literals('discord', 'Payload').join(''));
  assert.equal(await compilerErrors(directory, ['slack.ts', 'discord.ts']), '');

  // The compiler would also find a mistake.
  const [first = ''] = texts('slack');
  await writeFile(
    join(directory, 'wrong.ts'),
    `${slack}export const wrong: Payload = ${first.replace('"header"', '"heading"')};\n`,
  );
  assert.match(await compilerErrors(directory, ['wrong.ts']), /heading/);
});

/** What the compiler prints about files in a directory; empty if they are correct. */
async function compilerErrors(directory: string, names: readonly string[]): Promise<string> {
  const options = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--target',
    'esnext',
    '--module',
    'nodenext',
    '--types',
    '',
  ];
  const program = join(ROOT, 'node_modules/typescript/bin/tsc');
  try {
    await promisify(execFile)(process.execPath, [program, ...options, ...names], { cwd: directory });
    return '';
  } catch (error) {
    return String((error as { stdout: unknown }).stdout);
  }
}

test('every card is valid, and the library reads exactly the texts of the payload', () => {
  for (const text of texts('teams')) {
    const { attachments } = JSON.parse(text) as TeamsMessage;
    const [attachment] = attachments;
    assert.ok(attachment !== undefined && attachments.length === 1);
    const context = new cards.SerializationContext(cards.Versions.v1_5);
    const card = new cards.AdaptiveCard();
    card.parse(attachment.content, context);
    assert.deepEqual(eventsOf(context), []);
    assert.deepEqual(
      card.validateProperties().validationEvents.map(({ message }) => message),
      [],
    );
    const sent = attachment.content.body.flatMap(({ inlines }) =>
      inlines.map((inline) => (typeof inline === 'string' ? inline : inline.text)),
    );
    assert.deepEqual(textsIn(card), sent);
  }
});

test('the library of Adaptive Cards would also find a mistake', () => {
  const context = new cards.SerializationContext(cards.Versions.v1_5);
  const body = [
    { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: 'a', size: 'Huge' }, { type: 'Odd' }] },
  ];
  new cards.AdaptiveCard().parse({ type: 'AdaptiveCard', version: '1.5', body }, context);
  assert.ok(eventsOf(context).length >= 2);
});

function eventsOf(context: Cards.SerializationContext): (string | undefined)[] {
  return Array.from({ length: context.eventCount }, (_, at) => context.getEventAt(at).message);
}

function textsIn(element: Cards.CardElement): string[] {
  if (element instanceof cards.TextRun) return [element.text ?? ''];
  if (element instanceof cards.RichTextBlock) {
    return Array.from({ length: element.getInlineCount() }, (_, at) =>
      textsIn(element.getInlineAt(at)),
    ).flat();
  }
  assert.ok(element instanceof cards.AdaptiveCard);
  return Array.from({ length: element.getItemCount() }, (_, at) => textsIn(element.getItemAt(at))).flat();
}
