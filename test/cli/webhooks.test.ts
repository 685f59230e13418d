/** `flowhook webhooks` and `events` as separate processes, with a server: their output. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makePlace } from '../support/cli/place.ts';
import { startReceiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';

type Json = Record<string, unknown>;

const WORKFLOWS = {
  'default/people.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
};

test('a webhook is subscribed, set, tested, paused, rotated and unsubscribed', async (t) => {
  const place = await makePlace(t, WORKFLOWS);
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const server = await startServerProcess(place.environment);
  t.after(() => server.stop());
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await place.run('webhooks', ...args);
    assert.equal(code, 0, stderr);
    return { stdout, stderr };
  };

  const subscribed = await run(
    'subscribe',
    'default/people',
    receiver.url,
    '--events',
    'job.failed,run.failed',
  );
  const id = subscribed.stdout.trim();
  assert.match(id, /^wh_\w+$/);

  const tested = await run('test', receiver.url, '--wait');
  assert.match(
    tested.stdout,
    /^Delivered: the receiver returned 204\n[\d.]+ m?s in the queue, [\d.]+ m?s to respond \([^\n]*first byte at [^\n]*\)\n$/,
  );
  assert.equal(receiver.received[0]?.event.type, 'webhook_test');

  const [set, secret, listed, shown, deliveries] = await Promise.all([
    run('set', id, '--ordered', '--rate', '5', '--timeout', '2.5', '--header', 'x-token: hush', '--json'),
    run('secret', id),
    run('list', '--workflow', 'people'),
    run('show', id),
    run('deliveries', id, '--state', 'delivered'),
  ]);
  const { settings } = JSON.parse(set.stdout) as Json;
  assert.deepEqual(settings, { ordered: true, ratePerSecond: 5, timeoutMs: 2_500, headers: ['x-token'] });
  assert.match(
    listed.stdout,
    new RegExp(`^${id}  default/people  active, .* ago  job\\.failed,run\\.failed  http:`),
  );
  assert.match(shown.stdout, /^last success +2/m);
  assert.match(
    deliveries.stdout,
    /^dlv_\w+ {2}delivered {2}webhook_test \(test\) {2}\S+Z {2}1 attempt {2,}Delivered: the receiver returned 204\n$/,
  );

  const delivery = deliveries.stdout.split(' ')[0] ?? '';
  const [one, rotated, events] = await Promise.all([
    run('delivery', delivery, '--body'),
    run('rotate', id, '--overlap-hours', '1'),
    place.run('events', 'list', '--after', '0', '--json'),
  ]);
  assert.match(
    one.stdout,
    /^attempt 1 +[-\d]+ [:\d]+ UTC \(\d+ \w+ ago\)\n +Delivered: the receiver returned 204 \(127\.0\.0\.1\)$/m,
  );
  assert.match(one.stdout, /^ {2}"type": "webhook_test",$/m);
  assert.notEqual(rotated.stdout, secret.stdout);
  assert.match(rotated.stderr, /Deliveries are also signed with the old secret until 2/);
  assert.deepEqual(JSON.parse(events.stdout), [receiver.received[0]?.event]);

  const wide = (await run('subscribe', `${receiver.url}/3`, '--events', 'job.failed')).stdout.trim();
  assert.match((await run('show', wide)).stdout, /^workflow +default\/\*$/m);
  const moved = await run(
    ...['set', wide, '--to', `${receiver.url}/4`, '--events', 'job.finished', '--rotate-secret'],
    ...['--description', 'For Acme', '--label', 'customer:acme', '--label', 'b'],
  );
  assert.match(moved.stdout, /^description +For Acme\nlabels +customer:acme, b$/m);
  assert.match(moved.stdout, /^url +http:\S+\/4\nevents +job\.finished$/m);
  assert.match(moved.stderr, /it sends to the new URL\.[\s\S]*webhooks secret wh_/);
  const found = await run(
    'list',
    '--label',
    'customer:acme',
    '--search',
    'ACME',
    '--sort',
    '-name',
    '--json',
  );
  assert.deepEqual(
    (JSON.parse(found.stdout) as Json[]).map((webhook) => webhook.id),
    [wide],
  );
  const bare = await run('set', wide, '--no-description', '--no-labels');
  assert.doesNotMatch(bare.stdout, /^(description|labels) /m);
  await run('unsubscribe', wide, '--yes');

  const again = await run('replay', delivery, '--wait', '--json');
  assert.equal((JSON.parse(again.stdout) as Json).origin, 'replay');
  const since = '2026-01-01T00:00Z';
  const replayed = await run('replay', id, '--since', since, '--state', 'delivered', '--wait');
  assert.match(replayed.stdout, /^rpl_\w+ done: 1 event sent again: 1 arrived\n$/);
  await receiver.until((received) => received.length === 3, 'all three');

  const nothing = await run('replay', id, '--since', since, '--wait');
  assert.match(
    nothing.stdout,
    /^There is nothing to send: no delivery of this period is waiting or dead\. Other deliveries: 1 delivered/,
  );

  await run('pause', id, '--reason', 'Moving house');
  assert.match((await run('show', id)).stdout, /^state +paused\n[\s\S]*^reason +Moving house$/m);
  assert.match(
    (await run('test', id, '--wait')).stderr,
    /is paused\. The event will be sent when it is resumed/,
  );
  await run('resume', id);
  await receiver.until((received) => received.length === 4, 'the waiting delivery');
  assert.match((await run('unsubscribe', id, '--yes')).stdout, /^unsubscribed wh_/);
  const { stdout, stderr } = await run('list');
  assert.deepEqual([stdout, /webhooks subscribe WORKFLOW URL/.test(stderr)], ['', true]);
});

test('a replay after an outage asks with a count, sends waiting events once, and fails if an event failed', async (t) => {
  const place = await makePlace(t, WORKFLOWS);
  let status = 401;
  const receiver = await startReceiver({ status: () => status });
  const server = await startServerProcess(place.environment);
  t.after(() => Promise.all([server.stop(), receiver.stop()]));
  const run = (...args: string[]) => place.run('webhooks', ...args);
  const id = (await run('subscribe', 'people', receiver.url)).stdout.trim();
  await run('test', id, '--wait');
  await run('test', id, '--wait');
  const replay = ['replay', id, '--since', '2026-01-01T00:00Z'];
  const counted = await run(...replay, '--dry-run');
  assert.match(counted.stdout, /^The replay would send 2 events: 2 waiting \(created from 2026-01-01T00:00/);
  const asked = await run(...replay, '--wait');
  assert.match(
    asked.stderr,
    /2 events \(2 waiting\) created from .* will be sent again to wh_.*Confirm with --yes/,
  );
  assert.equal(asked.code, 2);
  const failed = await run(...replay, '--wait', '--yes');
  assert.match(
    failed.stdout,
    /^rpl_\w+ done: 2 events sent again: 2 failed\n {2}2 × HTTP 401.* \(will be retried\)\n$/,
  );
  assert.equal(failed.code, 1);
  status = 204;
  const arrived = await run(...replay, '--wait', '--yes');
  assert.match(arrived.stdout, /^rpl_\w+ done: 2 events sent again: 2 arrived\n$/);
  assert.equal(arrived.code, 0);
  assert.equal(JSON.parse((await run('deliveries', id, '--json')).stdout).length, 2);
  status = 401;
  await run('test', id, '--wait');
  const [waiting] = JSON.parse((await run('deliveries', id, '--state', 'waiting', '--json')).stdout);
  status = 204;
  const now = await run('replay', waiting.id, '--wait', '--json');
  assert.deepEqual(
    [now.code, JSON.parse(now.stdout).id, JSON.parse(now.stdout).state],
    [0, waiting.id, 'delivered'],
  );
  status = 401;
  const copy = JSON.parse((await run('replay', waiting.id, '--wait', '--json')).stdout);
  assert.deepEqual([copy.state, copy.attempt, copy.id === waiting.id], ['waiting', 1, false]);
  status = 204;
  const well = await run('replay', waiting.id, '--wait', '--json');
  const { id: carrier, state, attempt } = JSON.parse(well.stdout);
  assert.deepEqual(
    [well.code, carrier, state, attempt],
    [0, copy.id, 'delivered', 2],
    'the command waits for the copy',
  );
});

test('every mistake has an exit code, and the error suggests a correction', async (t) => {
  const place = await makePlace(t, WORKFLOWS);
  const nobody = 'http://127.0.0.1:1/hook';
  const id = (await place.run('webhooks', 'subscribe', 'people', nobody)).stdout.trim();
  const made = await place.run('webhooks', 'test', id);
  assert.match(made.stderr, /To see the delivery, run `flowhook webhooks delivery dlv_\w+`/);
  const calls: [string[], number, RegExp][] = [
    [['show', `${nobody}s`], 3, /Did you mean http:\/\/127\.0\.0\.1:1\/hook\?/],
    [['subscribe', 'peple', nobody], 3, /Did you mean "people"\?/],
    [['subscribe', 'people', 'nowhere'], 2, /absolute http/],
    [['subscribe', 'people'], 2, /The URL is missing: run `flowhook webhooks subscribe people https/],
    [['subscribe', 'people', nobody, '--events', 'job.finishd'], 2, /did you mean "job\.finished"\?/],
    [
      ['subscribe', nobody, '--events', 'oops'],
      2,
      /"oops" never fires here; the events are workflow_queued,/,
    ],
    [['subscribe', nobody, '--team', 'defalt'], 3, /Did you mean "default"\?/],
    [['pause', id, '--reason', 'x'.repeat(1_001)], 2, /--reason must be a string of 1 to 1000 characters/],
    [['pause', id, '--reason', ' '], 2, /--reason must be a string/],
    [['set', id], 2, /Set at least one of ordered/],
    [['set', id, '--rate', 'fast'], 2, /`ratePerSecond` must be a number/],
    [['set', id, '--header', 'host: x'], 2, /host/],
    [['rotate', id, '--overlap-hours', '200'], 2, /from 0 to 168/],
    [['deliveries', id, '--state', 'ded'], 2, /Did you mean dead\?/],
    [['delivery', 'dlv_1'], 3, /No delivery "dlv_1" found/],
    [['replay', id], 2, /--since is missing: .* add a time/],
    [['replay', id, '--since', 'yesterday'], 2, /--since must be a date or a time with a time zone/],
  ];
  await Promise.all(
    calls.map(async ([args, expected, sentence]) => {
      const { code, stdout, stderr } = await place.run('webhooks', ...args);
      assert.match(stderr, sentence);
      assert.deepEqual([args, code, stdout], [args, expected, '']);
    }),
  );

  const early = await place.run('webhooks', 'test', id, '--wait');
  assert.match(early.stderr, /No server is running on this database\. Events are sent after you start one/);
  assert.equal(early.code, 6);

  const server = await startServerProcess(place.environment);
  t.after(() => server.stop());
  const failed = await place.run('webhooks', 'test', id, '--wait');
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /^The connection was refused: .* \(next attempt in .+\)\n/);
});

test('without the encryption key, only commands that need a secret fail, with one line', async (t) => {
  const place = await makePlace(t, { ...WORKFLOWS, 'default/inbox.yaml': 'source: { type: push }\n' });
  const subscribed = await place.run('webhooks', 'subscribe', 'people', 'http://127.0.0.1:9/');
  const id = subscribed.stdout.trim();
  await rm(join(place.directory, 'data', 'encryption.key'));
  await writeFile(join(place.directory, 'rows.ndjson'), '{"id":1}\n');

  const tested = await place.run('webhooks', 'test', id);
  assert.equal(tested.code, 0, tested.stderr);
  const delivery = tested.stdout.trim();
  for (const args of [
    ['list'],
    ['deliveries', id],
    ['delivery', delivery],
    ['replay', delivery],
    ['replay', id, '--since', '2020-01-01T00:00Z', '--state', 'waiting', '--yes'],
  ]) {
    const { code, stderr } = await place.run('webhooks', ...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
  }
  for (const args of [
    ['webhooks', 'secret', id],
    ['data', 'import', 'rows.ndjson', '--workflow', 'inbox'],
  ]) {
    const { code, stderr } = await place.run(...args);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^flowhook: The encryption key of this database is missing\. Restore its file .*\n$/,
    );
  }
});
