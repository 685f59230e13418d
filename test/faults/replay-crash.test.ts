/** A server that is killed during a replay: the next one continues it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flowhook } from '../../client/src/flowhook-client.ts';
import { makePlace } from '../support/cli/place.ts';
import { startReceiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';

const EVENTS = 300;

test('a replay continues after its server was killed: every event is sent by one delivery, and arrives', async (t) => {
  const place = await makePlace(t, { 'default/inbox.yaml': 'source: { type: push }\n' });
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  let server = await startServerProcess(place.environment);
  t.after(() => server.stop());
  const client = () =>
    new Flowhook({ url: server.url, key: place.environment.FLOWHOOK_BOOTSTRAP_KEY ?? '' }).webhooks;
  const { id } = await client().create({ url: receiver.url, events: ['webhook_test'] });
  await Promise.all(Array.from({ length: EVENTS }, () => client().test(id)));
  await receiver.until((all) => all.length === EVENTS, 'all of them');
  const selection = { since: new Date(0), states: ['delivered' as const] };
  while ((await client().planReplay(id, selection)).count < EVENTS);

  const { id: replayId } = await client().replaySince(id, selection);
  await receiver.until((all) => all.length >= EVENTS + 50, 'some of them again');
  await server.kill();
  server = await startServerProcess(place.environment);
  let replay = await client().readReplay(id, replayId);
  while (replay.state === 'running' || replay.outcome.underWay > 0) {
    replay = await client().readReplay(id, replayId);
  }
  assert.equal(replay.made, EVENTS);
  assert.equal(replay.outcome.arrived, EVENTS);
  const again = receiver.received.slice(EVENTS).map(({ event }) => event.id);
  assert.equal(new Set(again).size, EVENTS);
  const sent = await client()
    .deliveries(id, { state: ['delivered'] })
    .take(3 * EVENTS);
  assert.equal(sent.filter(({ origin }) => origin === 'replay').length, EVENTS);
});

test('a retry of two held-back webhooks continues after its server was killed, without a duplicate', async (t) => {
  const place = await makePlace(t, { 'default/inbox.yaml': 'source: { type: push }\n' });
  let status = 503;
  const receiver = await startReceiver({ status: () => status });
  t.after(() => receiver.stop());
  let server = await startServerProcess(place.environment);
  t.after(() => server.stop());
  const client = () => new Flowhook({ url: server.url, key: place.environment.FLOWHOOK_BOOTSTRAP_KEY ?? '' });
  const ids: string[] = [];
  for (const ordered of [false, true]) {
    const url = `${receiver.url}?${ordered}`;
    const { id } = await client().webhooks.create({ url, events: ['webhook_test'], settings: { ordered } });
    await Promise.all(Array.from({ length: EVENTS }, () => client().webhooks.test(id)));
    ids.push(id);
  }
  await receiver.until((all) => all.length >= 2, 'an attempt at each');
  status = 204;
  const before = receiver.received.length;
  const plan = await client().deliveries.planRetry();
  assert.equal(plan.webhooks.length, 2);
  assert.equal(plan.count, plan.byState.waiting);
  const retry = await client().deliveries.retry({ until: plan.until });
  await receiver.until((all) => all.length >= before + 50, 'some of them');
  await server.kill();
  server = await startServerProcess(place.environment);
  let now = await client().deliveries.readRetry(retry?.id ?? '');
  while (now.state === 'running' || now.underWay > 0) now = await client().deliveries.readRetry(now.id);
  for (const id of ids) {
    const all = await client()
      .deliveries.list({ webhookId: id })
      .take(3 * EVENTS);
    assert.equal(all.length, EVENTS, 'no delivery is new');
    assert.deepEqual(
      new Set(all.map(({ state, origin }) => `${state} ${origin}`)),
      new Set(['delivered test']),
    );
  }
});
