/** The recipes of docs/guides/filters.md: a real service publishes their versions, and sends what the page shows. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Snippet, snippetsOf, textOfPage } from '../support/docs/snippets.ts';
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const PAGE = 'docs/guides/filters.md';
const HOUR_MS = 3_600_000;
const text = textOfPage(PAGE);

interface Recipe {
  title: string;
  /** The body of a request that makes the webhook, without its URL. */
  webhook: Record<string, unknown>;
  /** The bodies that the page shows. */
  bodies: Json[];
  receiver: Receiver;
}
type Json = Record<string, unknown>;

const files = new Map(
  [...text.matchAll(/^cat > (\S+) <<'END'\n([\s\S]*?)\nEND$/gm)].map(([, name = '', body = '']) => [
    name,
    body,
  ]),
);

let nowMs = Date.parse('2026-01-05T09:00:00Z');
const service = await startService({
  clock: () => nowMs,
  workflows: {
    'default/shop.yaml': 'source: { type: push }',
    'default/postings.yaml': 'source: { type: push }',
  },
});
after(() => service.stop());

const recipes: Recipe[] = [];
for (const [line, snippets] of Map.groupBy(snippetsOf(PAGE, text), headingBefore)) {
  const command = snippets.map(({ text }) => commandIn(text)).find((found) => found !== undefined);
  if (command === undefined) continue;
  const bodies = snippets.filter(({ language }) => language === 'json').map(({ text }) => JSON.parse(text));
  recipes.push({ title: line, webhook: command, bodies, receiver: await startReceiver() });
}

function headingBefore({ line }: Snippet): string {
  const headings = text
    .split('\n')
    .slice(0, line)
    .filter((one) => /^##+ /.test(one));
  return headings.at(-1)?.replace(/^#+ /, '') ?? '';
}

/** The request that `webhooks subscribe` makes of its arguments. */
function commandIn(shell: string): Json | undefined {
  const line = /flowhook webhooks subscribe (.*)/.exec(shell.replaceAll('\\\n', ' '))?.[1];
  if (line === undefined) return undefined;
  const words = (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^'(.*)'$/, '$1'));
  const flags = new Map(
    words.flatMap((word, at) => (word.startsWith('--') ? [[word, words[at + 1] ?? '']] : [])),
  );
  const [workflowId = ''] = words;
  const template = flags.get('--template');
  return {
    ...(workflowId.includes('://') ? {} : { workflowId }),
    events: flags.get('--events')?.split(','),
    filter: flags.get('--filter'),
    ...(flags.has('--cooldown') ? { cooldown: flags.get('--cooldown') } : {}),
    ...(flags.has('--format') ? { format: flags.get('--format') } : {}),
    ...(template === undefined ? {} : { template: JSON.parse(files.get(template) ?? '') }),
  };
}

for (const { webhook, receiver } of recipes) {
  const { status, body } = await service.call('POST', '/v1/integrations/webhooks', {
    webhookUrl: receiver.url,
    ...webhook,
  });
  assert.equal(status, 200, JSON.stringify(body));
}

async function publish(workflowId: string, body: string, status = 200): Promise<void> {
  const response = await fetch(`${service.url}/v1/workflows/${workflowId}/push`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
    body,
  });
  assert.equal(response.status, status, await response.text());
}

/** Resolves when everything that was decided has arrived: as many messages as decisions and ended cooldowns sent. */
async function settle(): Promise<void> {
  // A turn that was in progress may not have seen the last event.
  for (let turns = 0; turns < 2; turns += 1) await service.ruleEngine.tick();
  const { body } = await service.call('GET', '/v1/integrations/webhooks');
  for (const { id, url } of (body as { webhooks: { id: string; url: string }[] }).webhooks) {
    const { receiver } = recipes.find((one) => one.receiver.url === url) as Recipe;
    const deliveries = await service.store.deliveries.list({
      teamId: service.team.id,
      webhookId: id,
      limit: 100,
    });
    await receiver.until((received) => received.length === deliveries.length, `the messages of ${url}`);
  }
}

const articles = files.get('tuesday.json') ?? '';
/** Tuesday's articles with another price of the lamp. */
const lampAt = (price: number) => articles.replace('"price": 47', `"price": ${price}`);

await publish('shop', files.get('monday.json') ?? '');
await publish('postings', files.get('postings-monday.json') ?? '');
await settle();
const ofMonday = recipes.map(({ receiver }) => receiver.received.length);
nowMs += 24 * HOUR_MS;
await publish('shop', articles);
await publish('postings', files.get('postings-tuesday.json') ?? '');
await publish('shop', '[{', 422);
await publish('postings', '[{', 422);
await settle();

test('the page has its first example and twelve recipes', () => {
  assert.equal(recipes.length, 13);
});

for (const { title, bodies, receiver, webhook } of recipes) {
  test(`Tuesday's version sends what the page shows: ${title}`, () => {
    const expected = bodies[0] as Json;
    const sent = receiver.received.filter(({ event }) => event.type !== 'workflow_finished');
    assert.equal(sent.length, 1);
    assert.deepEqual(partOf(sent[0] as Received, expected), expected);
    const type = webhook.format === 'cloudevents' ? 'application/cloudevents+json' : 'application/json';
    assert.equal(sent[0]?.headers['content-type'], type);
  });
}

test('a first version is skipped by filters that read records', () => {
  const readsNone = recipes.findIndex(({ title }) => title.startsWith('8.'));
  assert.deepEqual(
    ofMonday.map((count) => count > 0),
    recipes.map((_, at) => at === readsNone),
  );
});

test('the newest state is sent when six hours have passed, and only then', async () => {
  const { receiver, bodies } = named('10.');
  for (const price of [44, 41]) {
    nowMs += HOUR_MS;
    await publish('shop', lampAt(price));
    await settle();
  }
  assert.equal(receiver.received.length, 1);
  nowMs += 4 * HOUR_MS;
  await settle();
  assert.equal(receiver.received.length, 2);
  const [first, last] = receiver.received as [Received, Received];
  assert.deepEqual(partOf(last, bodies[1] as Json), bodies[1]);
  assert.notEqual(last.event.id, first.event.id);
  assert.equal(last.headers['webhook-id'], last.event.id);
});

test('every crossing counts, and what happens on the weekend is not sent later', async () => {
  const counts = () => ['2.', '3.', '7.'].map((number) => named(number).receiver.received.length);
  const [below = 0, crossed = 0, onWeekdays = 0] = counts();
  // Saturday
  nowMs = Date.parse('2026-01-10T12:00:00Z');
  await publish('shop', lampAt(50));
  await publish('shop', lampAt(49));
  await settle();
  assert.deepEqual(counts(), [below + 1, crossed + 2, onWeekdays]);
  // Monday
  nowMs += 48 * HOUR_MS;
  await publish('shop', lampAt(51));
  await publish('shop', lampAt(48));
  await settle();
  assert.deepEqual(counts(), [below + 2, crossed + 4, onWeekdays + 1]);
});

test('a posting that comes back is new again, and one without a title is no mistake', async () => {
  const { receiver } = named('5.');
  const before = receiver.received.length;
  await publish(
    'postings',
    '[{"id": "17", "title": "Accountant"}, {"id": "20"}, {"id": "21", "title": null}]',
  );
  await publish('postings', files.get('postings-tuesday.json') ?? '');
  await settle();
  assert.equal(receiver.received.length, before + 1);
  const { body } = await service.call('GET', '/v1/integrations/webhooks?workflowId=postings');
  const [webhook] = (body as { webhooks: { filterMistake: unknown }[] }).webhooks;
  assert.equal(webhook?.filterMistake, null);
});

function named(number: string): Recipe {
  return recipes.find(({ title }) => title.startsWith(number)) ?? assert.fail(number);
}

/** The fields of a body that the page shows. Lists must be equal. */
function partOf({ event }: Pick<Received, 'event'>, expected: Json): Json {
  return pick(event, expected) as Json;
}

function pick(value: unknown, expected: unknown): unknown {
  if (!isObject(value) || !isObject(expected)) return value;
  return Object.fromEntries(Object.entries(expected).map(([key, of]) => [key, pick(value[key], of)]));
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
