/** `flowhook webhooks listen` as a separate process: forwards events of a server, signed, to a local URL. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { makePlace } from '../support/cli/place.ts';
import { startReceiver } from '../support/receiver.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

const KEY = 'key-of-the-commands-test';
const WORKFLOWS = {
  'default/people.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
  'default/idle.yaml': 'source: { type: command, command: ["true"] }\n',
};

const queue = async (server: ServerProcess, workflow: string) => {
  const path = `/v1/workflows/${workflow}/queue`;
  const answer = await fetch(server.url + path, { method: 'POST', headers: { 'x-api-key': KEY } });
  assert.equal(answer.status, 200);
};

test('events are filtered and forwarded with valid signatures, also after an outage of the server', async (t) => {
  const place = await makePlace(t, WORKFLOWS);
  const receiver = await startReceiver({
    status: ({ event }) => (event.type === 'workflow_queued' ? 500 : 204),
  });
  t.after(() => receiver.stop());
  const first = await startServerProcess(place.environment);
  const { port } = new URL(first.url);
  // Events of this earlier job are not forwarded.
  assert.equal((await place.run('run', 'people', '--wait')).code, 0);

  const listen = place.start(
    ...['webhooks', 'listen', '--forward-to', receiver.url, '--url', first.url, '--key', KEY],
    ...['--workflow', 'people', '--events', 'job.queued,workflow_finished', '--print'],
  );
  await listen.says(/^Forwarding events of .* to .*\. Press Ctrl-C to stop$/m);
  await queue(first, 'idle');
  await queue(first, 'people');
  const finished = () => receiver.received.filter(({ event }) => event.type === 'workflow_finished').length;
  await receiver.until(() => finished() >= 1, 'the end of the job');

  await first.kill();
  await listen.says(/is unreachable\. Retrying every second/);
  const second = await startServerProcess({ ...place.environment, FLOWHOOK_PORT: port });
  t.after(() => second.stop());
  await listen.says(/The server is reachable again/);
  const before = finished();
  await queue(second, 'people');
  await receiver.until(() => finished() > before, 'an event of the new server');

  listen.process.kill('SIGINT');
  const { code, stdout, stderr } = await listen.ended;
  assert.equal(code, 0, stderr);
  const secret = /^Signing secret: (whsec_\S+)$/m.exec(stderr)?.[1] ?? '';
  const types = new Set<string>();
  for (const { text, headers, event } of receiver.received) {
    assert.deepEqual(new Webhook(secret).verify(text, headers as Record<string, string>), event);
    assert.equal(event.workflowId, 'people');
    types.add(event.type);
  }
  assert.deepEqual([...types].sort(), ['workflow_finished', 'workflow_queued']);
  assert.match(stdout, /#\d+ {2}workflow_queued {2}people {2}evt_\w+ {2}→ 500 {2}[\d.]+ m?s\n/);
  assert.match(stdout, /#\d+ {2}workflow_finished {2}people {2}evt_\w+ {2}→ 204 {2}/);
  assert.match(stdout, /^ {2}"eventType": "workflow_finished",$/m);

  const event = receiver.received.at(-1)?.event.id ?? '';
  const target = ['webhooks', 'listen', '--forward-to', receiver.url, '--url', second.url, '--key', KEY];
  const [again, unknown, refused] = await Promise.all([
    place.run(...target, '--resend', event, '--json', '--secret', secret),
    place.run(...target, '--resend', 'evt_1'),
    place.run(...target.slice(0, -1), 'wrong'),
  ]);
  assert.deepEqual([again.code, (JSON.parse(again.stdout) as { status: number }).status], [0, 204]);
  const last = receiver.received.at(-1);
  assert.equal(last?.event.id, event);
  assert.ok(new Webhook(secret).verify(last?.text ?? '', last?.headers as Record<string, string>));
  assert.deepEqual([unknown.code, refused.code], [3, 4]);
  assert.match(unknown.stderr, /No event found/);
});

test('when a server returns with a new database, listen continues from its newest event', async (t) => {
  const place = await makePlace(t, WORKFLOWS);
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const first = await startServerProcess(place.environment);
  const { port } = new URL(first.url);
  for (let n = 0; n < 3; n++) assert.equal((await place.run('run', 'people', '--wait')).code, 0);
  const listen = place.start(
    ...['webhooks', 'listen', '--forward-to', receiver.url, '--url', first.url, '--key', KEY],
  );
  await listen.says(/^Forwarding events/m);
  await first.kill();
  await listen.says(/is unreachable/);
  const second = await startServerProcess({
    ...place.environment,
    FLOWHOOK_DATA: `${place.directory}/new`,
    FLOWHOOK_PORT: port,
  });
  t.after(() => second.stop());
  await listen.says(
    /The server has a new database: its newest event is #\d+, not #\d+\. Continuing from #\d+/,
  );
  await queue(second, 'people');
  await receiver.until(() => receiver.received.length > 0, 'an event of the new database');
  assert.ok((receiver.received[0]?.event.sequence ?? 99) < 5);
  listen.process.kill('SIGINT');
  assert.equal((await listen.ended).code, 0);
});

test('invalid flags fail immediately, and so does an unreachable server with --resend', async (t) => {
  const place = await makePlace(t, WORKFLOWS, false);
  const forward = ['webhooks', 'listen', '--forward-to', 'http://127.0.0.1:1/'];
  for (const [args, sentence] of [
    [
      ['webhooks', 'listen', '--forward-to', 'nowhere', '--key', 'x'],
      /--forward-to must be an absolute http/,
    ],
    [forward, /needs an API key: pass one with --key or FLOWHOOK_KEY/],
    [[...forward, '--key', 'x', '--events', 'workflow_finishd'], /did you mean "workflow_finished"\?/],
    [[...forward, '--key', 'x', '--secret', 'short'], /--secret must be `whsec_`/],
  ] as const) {
    const { code, stderr } = await place.run(...args);
    assert.match(stderr, sentence);
    assert.equal(code, 2);
  }
  const away = await place.run(...forward, '--url', 'http://127.0.0.1:1', '--key', 'x', '--resend', 'evt_1');
  assert.equal(away.code, 6);
  assert.match(away.stderr, /The service http:\/\/127\.0\.0\.1:1 cannot be reached/);
});
