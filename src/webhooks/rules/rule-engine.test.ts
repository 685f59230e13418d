/** The engine of the rules, with a real store and a real thread. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listed, manyRecords, type Records, setUpRules } from '../../../test/support/webhooks/rules.ts';

const prices = (values: Record<string, number | null>): Records =>
  Object.fromEntries(Object.entries(values).map(([id, price]) => [id, { price, name: `The ${id}` }]));

test('a price drop is sent with exactly the differences that match', async (t) => {
  const { subscribe, publish, engine, sent, decisions } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'fallsBelow(previous.price, record.price, 50)' });
  await publish(prices({ a: 60, b: 60, c: 40, d: 70 }));
  await publish(prices({ a: 45, b: 55, c: 30, e: 10 }));
  await engine().tick();
  const [message, ...others] = await sent(webhook);
  assert.deepEqual(others, []);
  assert.deepEqual(message?.data.differences, [
    { type: 'changed', id: 'a', fields: [{ key: 'price', value: 45, previousValue: 60 }] },
  ]);
  assert.equal(message?.data.matched, 1);
  assert.deepEqual(message?.data.records, { total: 4, added: 1, changed: 3, removed: 1 });
  assert.deepEqual(await decisions(webhook), [
    { state: 'filtered', matched: null, examined: null, reason: 'The first version is skipped' },
    { state: 'sent', matched: 1, examined: 5, reason: null },
  ]);
});

test('if no difference matches, nothing is sent, and the decision says why', async (t) => {
  const { subscribe, publish, engine, sent, decisions, done } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'record.price < 10', firstVersion: 'send' });
  await publish(prices({ a: 60, b: 60 }));
  await engine().tick();
  assert.deepEqual(await sent(webhook), []);
  assert.deepEqual(await decisions(webhook), [
    { state: 'filtered', matched: 0, examined: 2, reason: '0 of 2 differences match' },
  ]);
  assert.deepEqual(
    done.map(({ outcome, matched, examined, evaluated }) => ({ outcome, matched, examined, evaluated })),
    [{ outcome: 'filtered', matched: 0, examined: 2, evaluated: 2 }],
  );
});

test('all differences of a version are examined, in several steps', async (t) => {
  const { subscribe, publish, engine, sent, decisions, done } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'record.n == 4999 || record.n == 3', firstVersion: 'send' });
  await publish(manyRecords(5_000));
  await engine().tick();
  const [message] = await sent(webhook);
  assert.deepEqual(message && listed(message), ['added r3', 'added r4999']);
  assert.deepEqual(await decisions(webhook), [{ state: 'sent', matched: 2, examined: 5_000, reason: null }]);
  assert.ok(done.length >= 3, `${done.length} steps`);
});

test('a message lists as many matching differences as fit, and counts all', async (t) => {
  const { subscribe, publish, engine, sent } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'change == "added"', firstVersion: 'send' });
  await publish(Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`r${n}`, { n }])));
  await engine().tick();
  const [message] = await sent(webhook);
  assert.equal(message?.data.differences?.length, 100);
  assert.equal(message?.data.matched, 150);
  assert.equal(message?.data.truncated, true);
});

test('a filter that reads no record is evaluated once for each event', async (t) => {
  const { subscribe, publish, engine, sent, decisions, store, teamId } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'event.type == "workflow_finished" && data.version >= 2' }, [
    '*',
  ]);
  await publish(prices({ a: 1 }));
  await publish(prices({ a: 2 }));
  await engine().tick();
  const messages = await sent(webhook);
  assert.deepEqual(
    messages.map(({ type, data }) => [type, data.version]),
    [['workflow_finished', 2]],
  );
  const events = await store.events.list({ teamId, afterSequence: 0, limit: 100 });
  assert.equal(JSON.stringify(messages[0]), events.at(-1)?.body, 'the stored body');
  const reasons = (await decisions(webhook)).map(({ reason }) => reason);
  assert.equal(reasons.filter((reason) => reason === 'The filter does not match').length, reasons.length - 1);
});

test('a type error counts as no match, and is shown on the webhook with an example', async (t) => {
  const { subscribe, publish, engine, sent, store, teamId, done } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'record.price < 10', firstVersion: 'send' });
  await publish({ a: { price: 5 }, b: { price: 'free' }, c: { price: null } });
  await engine().tick();
  const [message] = await sent(webhook);
  assert.deepEqual(message && listed(message), ['added a']);
  const { ruleMistake } = (await store.webhooks.get({ teamId, id: webhook })) ?? {};
  assert.deepEqual([ruleMistake?.recordId, ruleMistake?.eventId], ['b', message?.id]);
  assert.match(ruleMistake?.message ?? '', /./);
  assert.equal(done.at(-1)?.mistake, 'rule');
});

test('many small decisions of a webhook share a transaction', async (t) => {
  const { subscribe, publish, engine, sent, store } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'record.n % 2 == 0' });
  for (let n = 0; n <= 40; n += 1) await publish({ a: { n } });
  let writes = 0;
  const counted = {
    ...store,
    decisions: {
      ...store.decisions,
      step: (input: Parameters<typeof store.decisions.step>[0]) => {
        writes += 1;
        return store.decisions.step(input);
      },
    },
  };
  await engine({ store: counted }).tick();
  const versions = (await sent(webhook)).map(({ data }) => data.version);
  assert.deepEqual(
    versions,
    Array.from({ length: 20 }, (_, n) => 2 * n + 3),
    'in the order of the events',
  );
  assert.ok(writes <= 4, `${writes} transactions`);
});

test('a test event is sent in the format of the webhook, even if its filter does not match', async (t) => {
  const { subscribe, engine, sent, store, teamId } = await setUpRules(t);
  const template = { text: `A \${event.type}` };
  const webhook = await subscribe({ filter: 'record.n == 0', format: 'template', template });
  await store.webhooks.test({ teamId, id: webhook });
  await engine().tick();
  assert.deepEqual(await sent(webhook), [{ text: 'A webhook_test' }]);
});

test('a template can use whole records, with and without a filter', async (t) => {
  const { subscribe, publish, engine, sent } = await setUpRules(t);
  const template = {
    text: `\${record.name}: \${previous.price} to \${record.price}`,
    all: `\${size(differences)}`,
  };
  const filtered = await subscribe({ filter: 'record.price < 50', format: 'template', template });
  const every = await subscribe({ format: 'template', template, firstVersion: 'skip' });
  await publish(prices({ a: 60, b: 60 }));
  await publish(prices({ a: 55, b: 45 }));
  await engine().tick();
  assert.deepEqual(await sent(filtered), [{ text: 'The b: 60 to 45', all: 1 }]);
  assert.deepEqual(await sent(every), [{ text: 'The a: 60 to 55', all: 2 }]);
});

test('teams take turns, so that a large decision does not delay a small one', async (t) => {
  const { subscribe, publish, engine, done, store } = await setUpRules(t);
  const { makeWorkflow } = await import('../../store/conformance/setup.ts');
  const other = await makeWorkflow(store, { team: 'other' });
  const large = await subscribe({ filter: 'record.n < 0', firstVersion: 'send' });
  const small = await subscribe(
    { filter: 'record.n < 0', firstVersion: 'send' },
    ['workflow_data_change'],
    other,
  );
  await publish(manyRecords(9_000));
  await publish({ a: { n: 1 } }, other);
  await engine().tick();
  const ends = done.filter(({ outcome }) => outcome !== null).map(({ webhookId }) => webhookId);
  assert.deepEqual(ends, [small, large]);
});

test('a decision continues where it was when its node was killed', async (t) => {
  const { subscribe, publish, engine, sent, done, store, another } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'record.n == 4000', firstVersion: 'send' });
  await publish(manyRecords(5_000));
  // The commit of the second step is lost, as if the node had died before it.
  let steps = 0;
  const dying = {
    ...store,
    decisions: {
      ...store.decisions,
      step: async (input: Parameters<typeof store.decisions.step>[0]) => {
        steps += 1;
        if (steps > 1) throw new Error('killed');
        return store.decisions.step(input);
      },
    },
  };
  await engine({ store: dying }).tick();
  assert.deepEqual(await sent(webhook), []);
  assert.equal(done.length, 1, 'one step was written');
  await engine({ store: await another() }).tick();
  const messages = await sent(webhook);
  assert.deepEqual(messages.map(listed), [['added r4000']]);
  const evaluated = done.reduce((sum, one) => sum + one.evaluated, 0);
  assert.equal(evaluated, 5_000, 'no difference was examined twice');
});

test('two nodes that decide at the same time send each message once', async (t) => {
  const { subscribe, publish, engine, sent, another } = await setUpRules(t);
  const webhooks = await Promise.all(
    Array.from({ length: 5 }, (_, n) => subscribe({ filter: `record.n >= ${n}`, firstVersion: 'send' })),
  );
  await publish(Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`r${n}`, { n }])));
  const [one, two] = [engine(), engine({ store: await another() })];
  await Promise.all([one.tick(), two.tick()]);
  for (const webhook of webhooks) assert.equal((await sent(webhook)).length, 1);
});
