/** Filters of readers over HTTP, rules that are tried on past events, and decisions about events. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSource } from '../support/api/event-source.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Answer, startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

type Json = Record<string, unknown>;
interface Event extends Json {
  id: string;
  sequence: number;
  type: string;
  data: { matched?: number; records?: Json; differences?: { id: string }[]; changesUrl?: string };
}

const CHEAPER = 'fallsBy(previous.price, record.price, "5%")';
const enc = encodeURIComponent;

let service: TestService;
let receiver: Receiver;
before(async () => {
  service = await startService({
    workflows: {
      'default/prices.yaml': 'source: { type: push }\n',
      'default/others.yaml': 'source: { type: push }\n',
    },
  });
  receiver = await startReceiver();
  await push([
    { id: 'a', price: 100 },
    { id: 'b', price: 50 },
    { id: 'c', price: 10 },
  ]);
  await push([
    { id: 'a', price: 90 },
    { id: 'b', price: 49 },
    { id: 'c', price: 11 },
  ]);
  await push([
    { id: 'a', price: 91 },
    { id: 'b', price: 48 },
  ]);
});
after(async () => {
  await service.stop();
  await receiver.stop();
});

const get = (path: string, headers = {}) => service.call('GET', path, undefined, headers);
async function push(records: Json[], workflow = 'prices'): Promise<void> {
  const answer = await service.call('POST', `/v1/workflows/${workflow}/push`, records);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
}
async function eventsOf(path: string): Promise<Event[]> {
  const { status, body } = await get(path);
  assert.equal(status, 200, JSON.stringify(body));
  return (body as { events: Event[] }).events;
}
async function tried(rule: Json): Promise<Json[]> {
  const { status, body } = await service.call('POST', '/v1/webhooks/try', { workflowId: 'prices', ...rule });
  assert.equal(status, 200, JSON.stringify(body));
  const { tried, mistake } = body as { tried: Json[]; mistake: unknown };
  assert.equal(mistake, null, JSON.stringify(mistake));
  return tried;
}
function refused({ status, body }: Answer, sentence: RegExp): void {
  assert.match(String((body as Json).error), sentence);
  assert.equal(status, 400);
}

test('events in order: only those that match, with only the differences that match', async () => {
  const all = await eventsOf('/v1/events?limit=250');
  const [cheaper, ...more] = await eventsOf(`/v1/events?filter=${enc(CHEAPER)}`);
  assert.equal(more.length, 0);
  assert.deepEqual(
    [cheaper?.type, cheaper?.data.matched, cheaper?.data.differences?.map(({ id }) => id)],
    ['workflow_data_change', 1, ['a']],
  );
  assert.deepEqual(cheaper?.data.records, all.find(({ id }) => id === cheaper?.id)?.data.records);
  const { next } = (await get(`/v1/events?filter=${enc(CHEAPER)}`)).body as { next: number };
  assert.equal(next, all.at(-1)?.sequence, 'the position is after the last event that was examined');

  const finished = await eventsOf(`/v1/events?filter=${enc('event.type == "workflow_finished"')}`);
  assert.deepEqual(
    finished,
    all.filter(({ type }) => type === 'workflow_finished'),
  );
  const paged = await get(`/v1/events?limit=1&filter=${enc('event.type == "workflow_finished"')}`);
  assert.match(paged.headers.get('link') ?? '', /limit=1&filter=event\.type.*&after=\d+>; rel="next"/);
});

test('a wait continues while nothing matches, and ends with the first event that does', async () => {
  const after = (await eventsOf('/v1/events?limit=250')).at(-1)?.sequence;
  const filter = enc('event.workflowId == "others" && event.type == "workflow_data_change"');
  let isOver = false;
  const waiting = get(`/v1/events?after=${after}&wait=20&filter=${filter}`).finally(() => {
    isOver = true;
  });
  await push([
    { id: 'a', price: 92 },
    { id: 'b', price: 48 },
  ]);
  assert.equal(isOver, false);
  await push([{ id: 'x' }], 'others');
  const { events } = (await waiting).body as { events: Event[] };
  assert.deepEqual(
    events.map(({ workflowId }) => workflowId),
    ['others'],
  );
  const none = (await get(`/v1/events?after=${after}&wait=1&filter=${enc('false')}`)).body as {
    events: Event[];
    next: number;
  };
  assert.deepEqual(none.events, []);
  assert.ok(none.next > Number(after));
});

test('the history filters page by page', async () => {
  const found = await eventsOf(`/v1/events/history?workflowId=prices&filter=${enc(CHEAPER)}`);
  assert.deepEqual(
    found.map(({ data }) => data.differences?.map(({ id }) => id)),
    [['a']],
  );
  let path: string | undefined = `/v1/events/history?limit=2&filter=${enc(CHEAPER)}`;
  const paged: Event[] = [];
  for (let pages = 0; path !== undefined && pages < 50; pages += 1) {
    const answer = await get(path);
    paged.push(...(answer.body as { events: Event[] }).events);
    path = /<(.*)>/.exec(answer.headers.get('link') ?? '')?.[1];
  }
  assert.deepEqual(paged, found);
});

test('changes: only those that match, with a tag of their own', async () => {
  const path = '/v1/workflows/prices/changes?since=1&until=2';
  const all = await get(path);
  const some = await get(`${path}&filter=${enc(CHEAPER)}`);
  assert.deepEqual([(all.body as Json[]).length, (some.body as Json[]).map(({ id }) => id)], [3, ['a']]);
  assert.notEqual(some.headers.get('etag'), all.headers.get('etag'));
  assert.equal(some.headers.get('x-data-version'), '2');
  const etag = some.headers.get('etag') ?? '';
  assert.equal((await get(`${path}&filter=${enc(CHEAPER)}`, { 'if-none-match': etag })).status, 304);
  assert.equal(
    (await get(`${path}&filter=${enc('change == "added"')}`, { 'if-none-match': etag })).status,
    200,
  );
  const none = await get(`${path}&filter=${enc('change == "removed"')}`);
  assert.deepEqual(none.body, []);
  const typed = `event.type == "workflow_data_change" && ${CHEAPER}`;
  assert.equal(((await get(`${path}&filter=${enc(typed)}`)).body as Json[]).length, 1);
});

test('the stream reports the events that match, and resumes after the last one', async (t) => {
  const filter = enc('event.type == "workflow_data_change" && event.workflowId == "others"');
  const open = async (options = {}) => {
    const source = await openSource(`${service.url}/v1/stream?filter=${filter}`, {
      key: service.key,
      ...options,
    });
    t.after(() => source.close());
    return source;
  };
  const source = await open();
  await source.until(({ event }) => event === 'hello', 'the beginning');
  await push([{ id: 'a', price: 93 }]);
  await push([{ id: 'y' }], 'others');
  const message = await source.until(({ event }) => event === 'event', 'the event');
  const data = message.data as Json;
  assert.deepEqual(Object.keys(data), ['id', 'sequence', 'type', 'workflowId', 'jobId', 'timestamp']);
  assert.deepEqual(
    [String(data.sequence), data.type, data.workflowId],
    [message.id, 'workflow_data_change', 'others'],
  );
  assert.deepEqual(
    source.messages.map(({ event }) => event),
    ['hello', 'event'],
  );
  const resumed = await open({ lastEventId: String(Number(message.id) - 1) });
  assert.deepEqual(await resumed.until(({ event }) => event === 'event', 'the same event'), message);
});

test('a bad filter is refused with the sentence and the place', async () => {
  for (const path of [
    '/v1/events',
    '/v1/events/history',
    '/v1/stream',
    '/v1/workflows/prices/changes?since=0',
  ]) {
    const by = path.includes('?') ? '&' : '?';
    refused(await get(`${path}${by}filter=${enc('rekord.price < 5')}`), /`filter`: .*`rekord`.*record/);
    refused(await get(`${path}${by}filter=${enc('record.price <')}`), /`filter`: /);
    refused(await get(`${path}${by}filter=`), /`filter` must not be empty or repeated/);
    refused(
      await get(`${path}${by}filter=${'1'.repeat(4_097)}`),
      /`filter` must be text of at most 4096 characters/,
    );
    refused(await get(`${path}${by}fitler=true`), /Did you mean `filter`\?/);
  }
});

test('trying a rule says what would have been sent, to the byte, and why the rest would not', async () => {
  const before = (await eventsOf('/v1/events?limit=250')).length;
  const results = await tried({ filter: CHEAPER, events: ['data.changed'], last: 50 });
  const [first, second, third] = results;
  assert.deepEqual([first?.sent, first?.reason], [false, 'The first version is skipped']);
  assert.deepEqual([second?.sent, second?.matched, second?.examined], [true, 1, 3]);
  assert.deepEqual([third?.sent, third?.reason], [false, '0 of 3 differences match']);
  const body = JSON.parse(String(second?.body)) as Event;
  assert.deepEqual(
    [body.id, body.data.matched, body.data.differences?.map(({ id }) => id)],
    [second?.eventId, 1, ['a']],
  );
  assert.deepEqual(second?.headers, { 'content-type': 'application/json' });

  const shaped = await tried({
    filter: CHEAPER,
    format: 'template',
    template: { text: `\${id} costs \${record.price}`, price: `\${record.price}` },
    events: ['data.changed'],
    last: 50,
  });
  assert.equal(shaped[1]?.body, '{"text":"a costs 90","price":90}');
  const events = await tried({ format: 'cloudevents', last: 1 });
  assert.deepEqual(events[0]?.headers, { 'content-type': 'application/cloudevents+json' });
  assert.equal((await tried({ last: 3 })).length, 3);
  assert.equal((await eventsOf('/v1/events?limit=250')).length, before, 'nothing was written');
});

test('a mistake in a tried rule is a result with its place, and other mistakes are refused', async () => {
  const ask = (body: unknown) => service.call('POST', '/v1/webhooks/try', body);
  const { status, body } = await ask({ filter: 'rekord.price < 5' });
  const { tried: none, mistake } = body as { tried: unknown[]; mistake: Json };
  assert.deepEqual([status, none, mistake.field, mistake.from, mistake.to], [200, [], 'filter', 0, 6]);
  assert.match(String(mistake.message), /`rekord`/);
  const cooldown = (await ask({ cooldown: '6h' })).body as { mistake: Json };
  assert.deepEqual([cooldown.mistake.field, cooldown.mistake.from], ['cooldown', null]);
  refused(await ask({ last: 51 }), /`last` must be a whole number from 1 to 50/);
  refused(await ask({ events: ['job.finishd'] }), /did you mean "job\.finished"\?/);
  refused(await ask({ filtre: 'true' }), /Did you mean `filter`\?/);
  assert.equal((await ask({ workflowId: 'nobody' })).status, 404);
});

test('a webhook with a filter receives what matches, and its decisions say why it did not receive the rest', async () => {
  const { body } = await service.call('POST', '/v1/integrations/webhooks', {
    webhookUrl: receiver.url,
    events: ['workflow_data_change'],
    workflowId: 'others',
    filter: CHEAPER,
  });
  const path = `/v1/integrations/webhooks/${(body as Json).id}/decisions`;
  await push(
    [
      { id: 'x', price: 10 },
      { id: 'y', price: 10 },
    ],
    'others',
  );
  await push(
    [
      { id: 'x', price: 10 },
      { id: 'y', price: 9 },
    ],
    'others',
  );
  const decisions = await until('two decisions', async () => {
    const { decisions } = (await get(path)).body as { decisions: Json[] };
    return decisions.length === 2 && decisions.every(({ state }) => state !== 'pending') && decisions;
  });
  const [sent, filtered] = decisions;
  assert.deepEqual([sent?.state, sent?.matched, sent?.examined, sent?.filter], ['sent', 1, 1, CHEAPER]);
  assert.deepEqual([filtered?.state, filtered?.deliveryId], ['filtered', null]);
  assert.match(String(filtered?.reason), /^0 of \d differences match$/);
  await receiver.until((received) => received.length === 1, 'the delivery');
  assert.equal(receiver.received[0]?.event.id, sent?.eventId);

  const delivery = (await get(`/v1/deliveries/${sent?.deliveryId}`)).body as Json;
  assert.equal(delivery.eventId, sent?.eventId);
  const ofEvent = (await get(`/v1/events/${sent?.eventId}/decisions`)).body as { decisions: Json[] };
  assert.deepEqual(ofEvent.decisions, [sent]);
  const ofBoth = (await get(`${path}?eventId=${filtered?.eventId}`)).body as { decisions: Json[] };
  assert.deepEqual(ofBoth.decisions, [filtered]);
  const ofState = (await get(`${path}?state=filtered&limit=1`)).body as { decisions: Json[] };
  assert.deepEqual(ofState.decisions, [filtered]);
  const page = await get(`${path}?limit=1`);
  assert.deepEqual((page.body as { decisions: Json[] }).decisions, [sent]);
  const next = /<(.*)>/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  assert.deepEqual((await get(next)).body, { decisions: [filtered] });
});
