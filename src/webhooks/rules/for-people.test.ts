/** What webhooks for people are sent: through the engine, with a real store and a real thread. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listed, setUpRules } from '../../../test/support/webhooks/rules.ts';
import type { Letter } from '../../model/messages/mail.ts';
import { FORMATS_FOR_PEOPLE } from '../../model/rule.ts';
import { failAttempt, makeRunning } from '../../store/conformance/setup.ts';

const letterOf = (sent: unknown) => sent as Letter;

test('a letter lists 20 records with their titles, however large they are, and counts the others', async (t) => {
  const { subscribe, publish, engine, sent, decisions } = await setUpRules(t);
  const webhook = await subscribe({ format: 'mail', filter: 'record.price < 50', firstVersion: 'send' });
  const whole = await subscribe({ format: 'mail' });
  const text = 'x'.repeat(5_000);
  const records = Object.fromEntries(
    Array.from({ length: 61 }, (_, at) => [`r${at}`, { name: `The ${at}`, price: at < 41 ? 40 : 60, text }]),
  );
  await publish(records);
  await engine().tick();
  const [letter, ...others] = (await sent(webhook)).map(letterOf);
  assert.deepEqual(others, []);
  assert.equal(letter?.subject, 'people: 41 records match');
  assert.match(letter?.text ?? '', /41 of 61 differences match the filter\. This is the first version\./);
  assert.equal(letter?.text.match(/^\* The \d+ \(added\)$/gm)?.length, 20);
  assert.match(letter?.text ?? '', /\nand 21 more\n/);
  assert.ok((letter?.html.length ?? 0) < 90_000);
  assert.deepEqual((await decisions(webhook))[0], { state: 'sent', matched: 41, examined: 61, reason: null });
  const [all] = (await sent(whole)).map(letterOf);
  assert.equal(all?.subject, 'people: 61 records added');
  assert.match(all?.text ?? '', /\nand 41 more\n/);
});

test('a message about a failed job has the last lines of its log and the name of the webhook', async (t) => {
  const { store, at, subscribe, engine, sent } = await setUpRules(t);
  const { teamId } = at;
  const named = await subscribe({ format: 'mail' }, ['workflow_failed']);
  await store.webhooks.change({ teamId, id: named, name: 'Night shift' });
  const chats = await Promise.all(
    FORMATS_FOR_PEOPLE.map((format) => subscribe({ format, timeZone: 'Asia/Tokyo' }, ['workflow_failed'])),
  );
  const held = await makeRunning(store, at);
  const texts = ['connecting', '\u001b[31mrefused\u001b[0m <b>'];
  const lines = texts.map((text, n) => ({ seq: n + 1, at: 1, level: 'error' as const, text }));
  await store.jobs.report({ held, lines });
  await failAttempt(store, held, { error: 'The command ended with exit code 7' });
  await engine().tick();
  const [letter] = (await sent(named)).map(letterOf);
  assert.equal(letter?.subject, 'people failed');
  assert.match(letter?.text ?? '', /exit code 7[\s\S]*\n {4}connecting\n {4}refused <b>\n/);
  assert.match(letter?.text ?? '', /for the webhook “Night shift”/);
  for (const chat of chats) {
    const [message] = await sent(chat);
    assert.match(
      JSON.stringify(message),
      /connecting[\s\S]*19(\\\\)?:00 GMT\+9|19(\\\\)?:00 GMT\+9[\s\S]*connecting/,
    );
  }
});

test('a digest for people is one message with the newest state of each record', async (t) => {
  const { subscribe, publish, engine, sent, advance } = await setUpRules(t);
  const webhook = await subscribe({
    format: 'mail',
    filter: 'record.price < 50',
    digest: { everyMs: 3_600_000 },
  });
  const rules = engine();
  await publish({ a: { name: 'Phone', price: 60 }, b: { name: 'Lamp', price: 20 } });
  await publish({ a: { name: 'Phone', price: 40 }, b: { name: 'Lamp', price: 19 } });
  await rules.tick();
  await publish({ a: { name: 'Phone', price: 30 }, b: { name: 'Lamp', price: 20 } });
  await rules.tick();
  assert.deepEqual(await sent(webhook), []);
  advance(3_600_000);
  await rules.tick();
  const [letter, ...others] = (await sent(webhook)).map(letterOf);
  assert.deepEqual(others, []);
  assert.equal(letter?.subject, 'people: 2 records in this digest');
  assert.match(letter?.text ?? '', /\* Phone \(changed\)\n[\s\S]*price: 60 → 30\n/);
  assert.match(letter?.text ?? '', /\* Lamp \(as before\)\n/);
  assert.match(letter?.text ?? '', /4 matches from/);
});

test('people read what changed during a cooldown, and programs read the same as before', async (t) => {
  const { subscribe, publish, engine, sent, advance } = await setUpRules(t);
  const rule = { filter: 'record.price < 50', firstVersion: 'send', cooldownMs: 3_600_000 } as const;
  const people = await subscribe({ ...rule, format: 'mail' });
  const program = await subscribe(rule);
  const rules = engine();
  await publish({ a: { name: 'Phone', price: 40 } });
  await rules.tick();
  advance(1_000);
  await publish({ a: { name: 'Phone', price: 30 } });
  await rules.tick();
  advance(3_600_000);
  await rules.tick();
  const letters = (await sent(people)).map(letterOf);
  assert.deepEqual(
    letters.map(({ subject }) => subject),
    ['people: Phone added', 'people: Phone changed'],
  );
  assert.match(letters[1]?.text ?? '', /This is what changed during the cooldown\.[\s\S]*price: 40 → 30/);
  assert.deepEqual((await sent(program)).map(listed), [['added a'], ['changed a']]);
});
