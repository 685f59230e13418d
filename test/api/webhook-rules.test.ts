/** Rules of webhooks over HTTP: creating, reading, changing, refusing. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Answer, startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

const WEBHOOKS = '/v1/integrations/webhooks';
const FILTER = 'fallsBy(previous.price, record.price, "5%")';
const NO_RULE = {
  name: null,
  filter: null,
  format: 'standard',
  template: null,
  firstVersion: 'send',
  cooldown: null,
  digest: null,
  timeZone: null,
  filterMistake: null,
};

let service: TestService;
before(async () => {
  service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
});
after(() => service.stop());

const get = (path: string, headers = {}) => service.call('GET', path, undefined, headers);
const post = (path: string, body?: unknown) => service.call('POST', path, body);
const patch = (path: string, body: unknown, headers = {}) => service.call('PATCH', path, body, headers);

let urls = 0;
const target = () => ({
  webhookUrl: `https://example.com/${++urls}`,
  events: ['workflow_data_change'],
  workflowId: 'people',
});
/** The name and the rule of a webhook as the API shows them. */
function ruleOf(body: unknown): Json {
  const webhook = body as Json;
  return Object.fromEntries(Object.keys(NO_RULE).map((name) => [name, webhook[name]]));
}
async function revisionOf(id: unknown): Promise<number | null | undefined> {
  const team = await service.store.teams.bySlug({ slug: 'default' });
  return (await service.store.webhooks.get({ teamId: team?.id ?? '', id: String(id) }))?.ruleRevision;
}
function refused({ status, body }: Answer, sentence: RegExp): void {
  assert.match(String((body as Json).error), sentence);
  assert.equal(status, 400);
}

test('what POST returns, GET returns, and sending it back changes nothing and makes no new revision', async () => {
  for (const [rule, shown] of [
    [{}, NO_RULE],
    [
      { name: 'All', firstVersion: 'send' },
      { ...NO_RULE, name: 'All' },
    ],
    [{ filter: 'data.version > 1' }, { ...NO_RULE, filter: 'data.version > 1' }],
    [{ filter: FILTER }, { ...NO_RULE, filter: FILTER, firstVersion: 'skip' }],
    [
      { name: 'Cheaper', filter: FILTER, firstVersion: 'send', cooldown: '90m' },
      { ...NO_RULE, name: 'Cheaper', filter: FILTER, cooldown: '90m' },
    ],
    [{ format: 'cloudevents' }, { ...NO_RULE, format: 'cloudevents' }],
    [{ digest: { every: '90m' } }, { ...NO_RULE, digest: { every: '90m' } }],
    [{ digest: { at: '08:00' } }, { ...NO_RULE, digest: { at: '08:00', timeZone: 'UTC' } }],
    [
      { filter: FILTER, format: 'slack', timeZone: 'Asia/Tokyo', digest: { every: '60m' } },
      {
        ...NO_RULE,
        filter: FILTER,
        firstVersion: 'skip',
        format: 'slack',
        timeZone: 'Asia/Tokyo',
        digest: { every: '1h' },
      },
    ],
    [
      { format: 'template', template: { text: `Now \${record.price}`, all: [`\${differences}`, 1, null] } },
      {
        ...NO_RULE,
        format: 'template',
        template: { text: `Now \${record.price}`, all: [`\${differences}`, 1, null] },
      },
    ],
  ] as const) {
    const body = { ...target(), ...rule };
    const made = await post(WEBHOOKS, body);
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.deepEqual(ruleOf(made.body), shown);
    const { id } = made.body as Json;
    const path = `${WEBHOOKS}/${id}`;
    const read = await get(path);
    const { message, ...webhook } = made.body as Json;
    assert.equal(message, `Subscribed: webhook ${id}.`);
    assert.deepEqual(read.body, webhook);
    const revision = await revisionOf(id);

    const { message: then, ...again } = (await post(WEBHOOKS, body)).body as Json;
    assert.deepEqual(again, webhook, 'the same call again');
    assert.match(String(then), /^Already subscribed/);
    const { filterMistake: _, ...fields } = ruleOf(read.body);
    assert.deepEqual(((await patch(path, fields)).body as Json).webhook, webhook);
    assert.equal((await get(path)).headers.get('etag'), read.headers.get('etag'));
    assert.equal(await revisionOf(id), revision);
  }
});

test('a filter belongs to the identity of a webhook, and everything else is updated by the same call', async () => {
  const base = target();
  const cheap = (await post(WEBHOOKS, { ...base, filter: FILTER })).body as Json;
  const other = (await post(WEBHOOKS, { ...base, filter: 'record.price < 50' })).body as Json;
  const plain = (await post(WEBHOOKS, base)).body as Json;
  assert.equal(new Set([cheap.id, other.id, plain.id]).size, 3);
  const frozen = await post(`${WEBHOOKS}/subscribe`, base);
  assert.equal(frozen.headers.get('x-webhook-id'), plain.id, 'the frozen call finds only the plain one');

  const again = (await post(WEBHOOKS, { ...base, filter: FILTER, cooldown: '6h', name: 'Cheaper' }))
    .body as Json;
  assert.deepEqual([again.id, again.cooldown, again.name], [cheap.id, '6h', 'Cheaper']);
  const kept = (await post(WEBHOOKS, { ...base, filter: FILTER })).body as Json;
  assert.deepEqual([kept.cooldown, kept.name], ['6h', 'Cheaper'], 'fields that are omitted stay unchanged');

  const taken = await patch(`${WEBHOOKS}/${cheap.id}`, { filter: 'record.price < 50' });
  assert.equal(taken.status, 409);
  assert.match(String((taken.body as Json).error), /already has the same workflow, URL, events and filter/);
  const listed = (await get(`${WEBHOOKS}/list`)).body as { webhooks: Json[] };
  for (const one of listed.webhooks) assert.deepEqual(Object.keys(one), ['id', 'createdAt', 'url', 'events']);
});

test('PATCH changes single fields of a rule, and null removes them', async () => {
  const { id } = (await post(WEBHOOKS, target())).body as Json;
  const path = `${WEBHOOKS}/${id}`;
  const changed = async (body: Json) => {
    const answer = await patch(path, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return ruleOf((answer.body as Json).webhook);
  };
  assert.deepEqual(await changed({ filter: FILTER }), { ...NO_RULE, filter: FILTER, firstVersion: 'skip' });
  assert.equal(await revisionOf(id), 1);
  const both = await changed({ cooldown: '1d', name: 'A' });
  assert.deepEqual([both.filter, both.cooldown, both.name], [FILTER, '1d', 'A']);
  assert.deepEqual((await changed({ firstVersion: 'send' })).firstVersion, 'send');
  assert.deepEqual((await changed({ firstVersion: null })).firstVersion, 'skip');
  const shaped = await changed({ format: 'template', template: `Now \${record.price}` });
  assert.deepEqual([shaped.format, shaped.template], ['template', `Now \${record.price}`]);
  const standard = await changed({ format: 'standard' });
  assert.deepEqual([standard.format, standard.template], ['standard', null]);
  assert.deepEqual(await changed({ filter: null, cooldown: null, name: null }), NO_RULE);
  assert.equal(await revisionOf(id), null);
});

test('If-Match covers the name and the rule, and simultaneous changes of one rule lose nothing', async () => {
  const { id } = (await post(WEBHOOKS, { ...target(), filter: FILTER })).body as Json;
  const path = `${WEBHOOKS}/${id}`;
  const etag = (await get(path)).headers.get('etag') ?? '';
  assert.equal((await patch(path, { name: 'First' }, { 'if-match': etag })).status, 200);
  assert.equal((await patch(path, { cooldown: '1h' }, { 'if-match': etag })).status, 412);
  const named = (await get(path)).headers.get('etag') ?? '';
  assert.equal((await patch(path, { cooldown: '1h' }, { 'if-match': named })).status, 200);
  assert.equal((await patch(path, { name: 'Late' }, { 'if-match': named })).status, 412);

  const all = await Promise.all([
    patch(path, { cooldown: '2h' }),
    patch(path, { firstVersion: 'send' }),
    patch(path, { format: 'cloudevents' }),
    patch(path, { name: 'Last' }),
  ]);
  assert.deepEqual(
    all.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  const { cooldown, firstVersion, format, name } = (await get(path)).body as Json;
  assert.deepEqual([cooldown, firstVersion, format, name], ['2h', 'send', 'cloudevents', 'Last']);
});

test('mistakes are refused with a sentence that names the field and says what to write', async () => {
  const { id } = (await post(WEBHOOKS, target())).body as Json;
  for (const [rule, sentence] of [
    [{ filter: 'record.price <' }, /`filter`: /],
    [{ filter: 'rekord.price < 5' }, /`filter`: .*`?rekord`?.*record/],
    [{ filter: 'falsBelow(previous.price, record.price, 5)' }, /`filter`: .*fallsBelow/],
    [{ filter: 5 }, /`filter`: must be an expression in a string, or null/],
    [{ filter: `${'1 + '.repeat(1_100)}1 > 0` }, /`filter`: must have at most 4,096 characters/],
    [{ format: 'cloudevent' }, /`format`: must be .*did you mean "cloudevents"\?/],
    [{ template: { a: 1 } }, /`template`: is only used with `"format": "template"`/],
    [{ format: 'template' }, /`template`: is required with `"format": "template"`/],
    [{ format: 'template', template: `\${record.}` }, /`template`: /],
    [{ cooldown: '6h' }, /`cooldown`: .*set a filter/],
    [{ filter: FILTER, cooldown: '6 hours' }, /`cooldown`: must be a duration from "1s" to "7d"/],
    [{ filter: FILTER, cooldown: '8d' }, /`cooldown`: must be a duration from "1s" to "7d"/],
    [{ filter: FILTER, firstVersion: 'sent' }, /`firstVersion`: must be .*did you mean "send"\?/],
    [{ firstVersion: 'skip' }, /`firstVersion`: .*filters that read records/],
    [{ digest: '1h' }, /`digest`: must be \{ "every": "1h" \}, or null/],
    [{ digest: { every: '1h', cooldown: '6h' } }, /no field "digest\.cooldown"/],
    [
      { digest: { at: '08:00', timezone: 'UTC' } },
      /no field "digest\.timezone"\. Did you mean `digest\.timeZone`\?/,
    ],
    [
      { filter: FILTER, cooldown: '6h', digest: { every: '1h' } },
      /`digest`: a digest already gathers .*`"cooldown": null`/,
    ],
    [{ format: 'mail' }, /`format`: "mail" needs a `webhookUrl` such as "mailto:ops@example\.org"/],
    [{ timeZone: 'UTC' }, /`timeZone`: sets the times in messages for people/],
    [{ format: 'slack', timeZone: 'Zurich' }, /`timeZone`: .*did you mean "Europe\/Zurich"\?/],
    [{ name: '' }, /`name` must be a string of 1 to 100 characters/],
    [{ name: 'a\nb' }, /`name` must be a string .* on one line/],
    [{ fitler: FILTER }, /no field "fitler"\. Did you mean `filter`\?/],
    [{ coolDown: '6h' }, /no field "coolDown"\. Did you mean `cooldown`\?/],
  ] as const) {
    refused(await post(WEBHOOKS, { ...target(), ...rule }), sentence);
    refused(await patch(`${WEBHOOKS}/${id}`, rule), sentence);
  }
  refused(await patch(`${WEBHOOKS}/${id}`, {}), /Set at least one of ordered, .*name, filter, /);
  assert.deepEqual(ruleOf((await get(`${WEBHOOKS}/${id}`)).body), NO_RULE);
});

test('a webhook without a rule has no decisions, and unknown ones are not found', async () => {
  const { id } = (await post(WEBHOOKS, target())).body as Json;
  const answer = await get(`${WEBHOOKS}/${id}/decisions`);
  assert.deepEqual([answer.status, answer.body], [200, { decisions: [] }]);
  assert.equal((await get(`${WEBHOOKS}/wh_0/decisions`)).status, 404);
  assert.equal((await get('/v1/events/evt_0/decisions')).status, 404);
  assert.equal((await get(`${WEBHOOKS}/${id}/decisions?eventId=evt_0`)).status, 404);
  refused(
    await get(`${WEBHOOKS}/${id}/decisions?state=lost`),
    /`state` must be one of pending, sent, gathered, filtered/,
  );
});
