/** Messages for people from the command line to the reader: a server, a real SMTP server, and a chat. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makePlace } from '../support/cli/place.ts';
import { smtpReceiver } from '../support/mail/smtp-receiver.ts';
import { startReceiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';

test('an address is verified, and `test --wait` reports what the mail server said', async (t) => {
  const smtp = await smtpReceiver();
  t.after(() => smtp.close());
  const place = await makePlace(t, { 'default/shop.yaml': 'source: { type: push }\n' });
  Object.assign(place.environment, {
    FLOWHOOK_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
    FLOWHOOK_MAIL_FROM: 'flowhook@example.org',
  });
  const server = await startServerProcess(place.environment);
  t.after(() => server.stop());
  const on = ['--url', server.url, '--key', place.environment.FLOWHOOK_BOOTSTRAP_KEY ?? ''];
  const webhooks = (...args: string[]) => place.run('webhooks', ...args, ...on);

  const subscribed = await webhooks('subscribe', 'shop', '--mail', 'ops@example.org');
  assert.equal(subscribed.code, 0, subscribed.stderr);
  assert.match(subscribed.stderr, /It is paused until its address is verified/);
  const id = subscribed.stdout.trim();
  const early = await webhooks('test', id, '--wait');
  assert.match(
    early.stderr,
    /not verified: .* run `flowhook webhooks verify wh_\w+`\. The event will be sent then/,
  );

  const again = await webhooks('verify', 'ops@example.org');
  assert.equal(again.code, 0, again.stderr);
  const { mail } = await smtp.mail(2);
  const [link] = mail.text?.match(/http:\/\/\S+\/mail\/verify\/[\w.-]+/) ?? [];
  assert.equal((await fetch(link ?? '', { method: 'POST' })).status, 200);
  assert.match((await webhooks('show', id)).stdout, /^verified +2/m);
  // The test from before the verification comes first.
  assert.match((await smtp.mail(3)).mail.subject ?? '', /test/i);
  const tested = await webhooks('test', id, '--wait');
  assert.equal(tested.code, 0, tested.stderr + tested.stdout);
  assert.match(tested.stdout, /250/);
  assert.match((await smtp.mail(4)).mail.subject ?? '', /test/i);
});

test('`test --wait` sends a chat its own message, also in a digest, and reports the response', async (t) => {
  const place = await makePlace(t, { 'default/shop.yaml': 'source: { type: push }\n' });
  const server = await startServerProcess(place.environment);
  t.after(() => server.stop());
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  for (const more of [[], ['--digest', '1h']]) {
    const url = `${receiver.url}/${more.length}`;
    const made = await place.run('webhooks', 'subscribe', 'shop', '--slack', url, ...more);
    assert.equal(made.code, 0, made.stderr);
    const tested = await place.run('webhooks', 'test', made.stdout.trim(), '--wait');
    assert.equal(tested.code, 0, tested.stderr);
    assert.match(tested.stdout, /^Delivered: the receiver returned 204\n/);
    const { blocks } = JSON.parse(receiver.received.at(-1)?.text ?? '{}');
    assert.ok(Array.isArray(blocks) && blocks.length > 0, 'a message of Block Kit');
  }
});
