/** Webhooks that send mail, from the subscription to the mail that arrives: the whole service, and a real SMTP server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ReceivedMail, reply, type SmtpReceiver, smtpReceiver } from '../support/mail/smtp-receiver.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

type Json = Record<string, unknown>;

const HOOKS = '/v1/integrations/webhooks';
const HTML = { accept: 'text/html,*/*' };
const TO = 'ops@example.org';

let service: TestService;
let smtp: SmtpReceiver;
/** What the SMTP server says to the next mails. */
let replies: Error[] = [];
let nowMs = Date.now();

before(async () => {
  smtp = await smtpReceiver({ onMail: () => replies.shift() });
  service = await startService({
    clock: () => nowMs,
    workflows: { 'default/people.yaml': 'source: { type: push }\n' },
    settings: {
      FLOWHOOK_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
      FLOWHOOK_MAIL_FROM: 'Prices <flowhook@example.com>',
      FLOWHOOK_MAIL_DOMAINS: 'example.org',
    },
  });
});
after(async () => {
  await service.stop();
  await smtp.close();
});

async function call(method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await service.call(method, path, body);
  assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body as Json;
}

/** Subscribes an address and returns the webhook, and the mail that asks for confirmation. */
async function subscribed(to: string, more: Json = {}): Promise<{ hook: Json; asked: ReceivedMail }> {
  const count = smtp.mails.length;
  const hook = await call('POST', HOOKS, {
    webhookUrl: `mailto:${to}`,
    events: ['workflow_finished'],
    ...more,
  });
  return { hook, asked: await smtp.mail(count + 1) };
}

/** The first link of a mail to this page. */
function linkIn({ mail: { text = '' } }: ReceivedMail, page: 'verify' | 'unsubscribe'): string {
  const [link] = text.match(new RegExp(`http://\\S+/mail/${page}/[\\w.-]+`)) ?? [];
  assert.ok(link !== undefined, text);
  return link;
}

async function confirmed(to: string, more: Json = {}): Promise<Json> {
  const { hook, asked } = await subscribed(to, more);
  assert.equal((await fetch(linkIn(asked, 'verify'), { method: 'POST' })).status, 200);
  return call('GET', `${HOOKS}/${hook.id}`);
}

/** The first mail after so many others whose text contains these words. */
function mailWith(words: string, after: number): Promise<ReceivedMail> {
  const isIt = ({ mail }: ReceivedMail) => mail.text?.includes(words);
  return until(`a mail with ${words}`, () => smtp.mails.slice(after).find(isIt));
}

const push = (records: Json[]) => call('POST', '/v1/workflows/people/push', records);

/** Waits until the last delivery of a webhook is in this state, and returns it. */
function delivery(webhookId: unknown, state: string, attempt: number): Promise<Json> {
  return until(`${state} after ${attempt} attempts`, async () => {
    const { deliveries } = await call('GET', `${HOOKS}/${webhookId}/deliveries`);
    const [last] = deliveries as Json[];
    return last !== undefined && last.state === state && last.attempt === attempt ? last : undefined;
  });
}

async function refusal(
  method: string,
  path: string,
  body?: unknown,
): Promise<[number, string | null, string]> {
  const answer = await service.call(method, path, body);
  return [answer.status, answer.headers.get('x-error-code'), String((answer.body as Json).error)];
}

test('a change of a workflow arrives as a mail, after the address was confirmed', async () => {
  const { hook, asked } = await subscribed(TO, { name: 'Prices', events: ['workflow_data_change'] });
  assert.equal(hook.state, 'paused');
  assert.equal(hook.verifiedAt, null);
  assert.match(String(hook.pausedReason), /^The address is not verified/);
  assert.match(String(hook.message), /A mail with a link to confirm was sent to ops@example\.org\./);
  assert.deepEqual([asked.to, asked.from], [TO, 'flowhook@example.com']);
  assert.match(asked.mail.text ?? '', /wants it to send notices to ops@example\.org/);
  assert.doesNotMatch(asked.raw, /Prices to|List-Unsubscribe/, 'texts of users');
  const refused = await service.call('POST', `${HOOKS}/${hook.id}/resume`);
  assert.deepEqual([refused.status, refused.headers.get('x-error-code')], [409, 'address_unverified']);

  await push([{ id: '1', name: 'Ada', price: 10 }]);
  const link = linkIn(asked, 'verify');
  // Programs that check the links in mails follow them.
  const opened = await fetch(link, { headers: HTML });
  assert.match(await opened.text(), /<form method="post"><button type="submit">Send me notices/);
  assert.equal((await call('GET', `${HOOKS}/${hook.id}`)).state, 'paused');
  const before = smtp.mails.length;
  const clicked = await fetch(link, { method: 'POST', headers: HTML });
  assert.match(await clicked.text(), /The address is confirmed/);
  const active = await call('GET', `${HOOKS}/${hook.id}`);
  assert.deepEqual([active.state, active.pausedReason], ['active', null]);
  assert.notEqual(active.verifiedAt, null);

  await push([{ id: '1', name: 'Ada', price: 9 }]);
  const change = await mailWith('10 → 9', before);
  assert.equal(change.to, TO);
  assert.match(change.mail.html ?? '', />10<\/del>.*>9<\/ins>/);
  assert.match(change.headers['list-unsubscribe'] ?? '', /^<http:\/\/\S+\/mail\/unsubscribe\/\S+>$/);
  assert.match(
    change.mail.html ?? '',
    /<a [^>]*href="http:\/\/\S+\/mail\/unsubscribe\/[^"]+"[^>]*>Unsubscribe<\/a>/,
  );
  const again = await fetch(link, { method: 'POST', headers: HTML });
  assert.match(await again.text(), /The address is confirmed/);
});

test('one click on Unsubscribe ends the mails until the address is verified again', async () => {
  const hook = await confirmed('once@example.org');
  const before = smtp.mails.length;
  await call('POST', `${HOOKS}/${hook.id}/test`);
  const mail = await smtp.mail(before + 1);
  const link = linkIn(mail, 'unsubscribe');
  assert.equal(mail.headers['list-unsubscribe'], `<${link}>`);
  assert.match(await (await fetch(link, { headers: HTML })).text(), /<button type="submit">Unsubscribe/);
  assert.equal((await call('GET', `${HOOKS}/${hook.id}`)).state, 'active');
  // What a mail program sends (RFC 8058).
  const oneClick = await fetch(link, {
    method: 'POST',
    body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
  });
  assert.equal(oneClick.status, 200);
  assert.match(
    String(((await oneClick.json()) as Json).message),
    /no more of these notices to once@example\.org/,
  );
  const ended = await call('GET', `${HOOKS}/${hook.id}`);
  assert.equal(ended.state, 'paused');
  assert.match(String(ended.pausedReason), /^The recipient has unsubscribed/);
  assert.equal(ended.verifiedAt, null);
  assert.match(await (await fetch(link, { headers: HTML })).text(), /<h1>Unsubscribed/);
  const resumed = await refusal('POST', `${HOOKS}/${hook.id}/resume`);
  assert.deepEqual(resumed.slice(0, 2), [409, 'address_unverified']);

  const count = smtp.mails.length;
  const { message } = await call('POST', `${HOOKS}/${hook.id}/verify`);
  assert.match(String(message), /was sent to once@example\.org/);
  await fetch(linkIn(await smtp.mail(count + 1), 'verify'), { method: 'POST' });
  assert.equal((await call('GET', `${HOOKS}/${hook.id}`)).state, 'active');
});

test('a team verifies an address once', async () => {
  const first = await confirmed('known@example.org');
  const count = smtp.mails.length;
  const second = await call('POST', HOOKS, {
    webhookUrl: 'MAILTO:known@EXAMPLE.org',
    events: ['workflow_failed'],
  });
  assert.deepEqual([second.state, second.url], ['active', 'mailto:known@example.org']);
  assert.doesNotMatch(String(second.message), /verif/);
  const again = await call('POST', HOOKS, {
    webhookUrl: 'mailto:known@example.org',
    events: ['workflow_finished'],
  });
  assert.equal(again.id, first.id);
  assert.match(String((await call('POST', `${HOOKS}/${first.id}/verify`)).message), /already verified/);
  assert.equal(smtp.mails.length, count);
});

test('a mail that the server asks to send later is sent again, as the same message', async () => {
  const hook = await confirmed('gray@example.org');
  const before = smtp.mails.length;
  replies = [reply(451, '4.7.1 Greylisted, try again in a minute')];
  await call('POST', `${HOOKS}/${hook.id}/test`);
  const waiting = await delivery(hook.id, 'waiting', 1);
  const { lastAttempt } = waiting as { lastAttempt: Json };
  assert.deepEqual([lastAttempt.outcome, lastAttempt.status], ['smtp', 451]);
  assert.match(String(lastAttempt.message), /asked to send the mail later.*Greylisted/);
  nowMs += 10_000;
  await delivery(hook.id, 'delivered', 2);
  const mail = await smtp.mail(before + 1);
  const { attempts } = (await call('GET', `/v1/deliveries/${waiting.id}`)) as { attempts: Json[] };
  const ids = attempts.map((one) => ((one.request as Json).headers as Json)['message-id']);
  assert.deepEqual([...new Set(ids)], [mail.headers['message-id']]);

  // Replays of one delivery are new attempts of the same message.
  await call('POST', `/v1/deliveries/${waiting.id}/replay`);
  const repeated = await smtp.mail(before + 2);
  assert.equal(repeated.headers['message-id'], mail.headers['message-id']);
  assert.equal(repeated.mail.text, mail.mail.text);
});

test('a mail that the server refuses permanently is dead after one attempt, and can be replayed', async () => {
  const hook = await confirmed('gone@example.org');
  const before = smtp.mails.length;
  replies = [reply(550, '5.1.1 No such mailbox here')];
  await call('POST', `${HOOKS}/${hook.id}/test`);
  const dead = await delivery(hook.id, 'dead', 1);
  const { lastAttempt } = dead as { lastAttempt: Json };
  assert.deepEqual([lastAttempt.outcome, lastAttempt.status], ['smtp', 550]);
  const since = new Date(nowMs - 60_000).toISOString();
  const replayed = await call('POST', `${HOOKS}/${hook.id}/replay`, { since });
  assert.match(String(replayed.message), /1 delivery|1 deliveries|replay/i);
  await smtp.mail(before + 1);
});

test('links are genuine, complete, for one purpose, and not too old', async () => {
  const { hook, asked } = await subscribed('links@example.org');
  const { hook: other } = await subscribed('others@example.org');
  const link = linkIn(asked, 'verify');
  const token = link.split('/').at(-1) ?? '';
  const of = (path: string) => fetch(`${service.url}/mail/${path}`, { method: 'POST' });
  for (const path of [
    `unsubscribe/${token}`,
    `verify/${token.slice(0, -1)}`,
    `verify/${token.replace(/.$/, (last) => (last === '0' ? '1' : '0'))}`,
    `verify/${token.replace(String(hook.id), String(other.id))}`,
    `verify/${token.replace(/\.[^.]+(?=\.[^.]+$)/, '.0')}`,
    'verify/a.b.c.d',
    'verify/%00',
  ]) {
    const response = await of(path);
    assert.deepEqual(
      [response.status, response.headers.get('x-error-code')],
      [404, 'mail_link_invalid'],
      path,
    );
  }
  const page = await fetch(`${service.url}/mail/verify/nonsense`, { headers: HTML });
  assert.equal(page.status, 404);
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  assert.equal(page.headers.get('cache-control'), 'no-store');
  nowMs += 7 * 86_400_000;
  const late = await of(`verify/${token}`);
  assert.deepEqual([late.status, late.headers.get('x-error-code')], [410, 'mail_link_expired']);
  assert.equal((await call('GET', `${HOOKS}/${hook.id}`)).state, 'paused');
  await call('DELETE', `${HOOKS}/unsubscribe/${hook.id}`);
  assert.equal((await of(`verify/${token}`)).status, 404);
});

test('an address gets at most five verification mails a day, and those that failed do not count', async () => {
  const { hook } = await subscribed('often@example.org');
  const verify = () => service.call('POST', `${HOOKS}/${hook.id}/verify`);
  replies = [reply(550, '5.7.1 Not from here')];
  const failed = await verify();
  assert.deepEqual([failed.status, failed.headers.get('x-error-code')], [502, 'mail_failed']);
  assert.match(String((failed.body as Json).error), /SMTP 550.*Not from here/);
  for (const _ of [2, 3, 4, 5]) assert.equal((await verify()).status, 200);
  const limited = await verify();
  assert.deepEqual([limited.status, limited.headers.get('x-error-code')], [409, 'verification_limit']);
  nowMs += 86_400_000;
  assert.equal((await verify()).status, 200);
});

test('a webhook is created although its verification mail cannot be sent, and the message says so', async () => {
  replies = [reply(451, '4.3.0 Busy')];
  const hook = await call('POST', HOOKS, { webhookUrl: 'mailto:late@example.org', events: ['*'] });
  assert.match(
    String(hook.message),
    /could not be sent\. POST \/v1\S+\/verify sends it again\..*SMTP 451.*Busy/,
  );
  assert.equal(hook.state, 'paused');
});

test('addresses that are not one plain address are refused, with the nearest right form', async () => {
  const cases: [string, RegExp][] = [
    ['mailto:', /an address with an @/],
    ['mailto:a@example.org,b@example.org', /single address.*Use mailto:a@example\.org/],
    ['mailto:a@example.org?subject=x', /without "\?".*Use mailto:a@example\.org/],
    ['mailto:Ops <ops@example.org>', /without a name.*Use mailto:ops@example\.org/],
    ['mailto:a%0d%0aBcc:b@example.org', /line breaks/],
    ['mailto:%22a b%22@example.org', /quoted part/],
    ['mailto:ops@[10.0.0.1]', /name of a domain/],
    ['mailto:ops@10.0.0.1', /name of a domain/],
    [`mailto:${'a'.repeat(65)}@example.org`, /at most 64 bytes/],
    ['mailto:ops@example.com', /FLOWHOOK_MAIL_DOMAINS allows example\.org/],
  ];
  for (const [webhookUrl, words] of cases) {
    const [status, code, sentence] = await refusal('POST', HOOKS, { webhookUrl, events: ['*'] });
    assert.deepEqual([status, code], [400, 'field_invalid'], webhookUrl);
    assert.match(sentence, words);
  }
  const { hook } = await subscribed('zoë@sub.example.org');
  assert.equal(hook.url, 'mailto:zoë@sub.example.org');
});

test('a mail cannot be shown as a command', async () => {
  const hook = await confirmed('shell@example.org');
  await call('POST', `${HOOKS}/${hook.id}/test`);
  const { id } = await delivery(hook.id, 'delivered', 1);
  const [status, code] = await refusal('GET', `/v1/deliveries/${id}/curl`);
  assert.deepEqual([status, code], [400, 'field_invalid']);
});

test('a node without an SMTP server refuses addresses, and names the setting', async () => {
  const plain = await startService();
  const answer = await plain.call('POST', HOOKS, { webhookUrl: `mailto:${TO}`, events: ['*'] });
  assert.deepEqual([answer.status, answer.headers.get('x-error-code')], [400, 'mail_unavailable']);
  assert.match(String((answer.body as Json).error), /FLOWHOOK_SMTP_URL.*flowhook\.yaml/);
  await plain.stop();
});

test('a webhook that gets another address waits until its owner confirms it, with a link of its own', async () => {
  const { id } = await confirmed('old@example.org', { name: 'Moves' });
  const path = `${HOOKS}/${id}`;
  const before = smtp.mails.length;
  const { message, webhook } = await call('PATCH', path, { url: 'mailto:new@Example.ORG' });
  assert.match(String(message), /It is paused until its address is verified\. A mail .* new@example\.org\.$/);
  const { url, state, verifiedAt, format } = webhook as Json;
  assert.deepEqual([url, state, verifiedAt, format], ['mailto:new@example.org', 'paused', null, 'mail']);
  const asked = await smtp.mail(before + 1);
  assert.equal(asked.to, 'new@example.org');
  assert.equal((await fetch(linkIn(asked, 'verify'), { method: 'POST' })).status, 200);
  assert.equal((await call('GET', path)).state, 'active');
  const [status, code, sentence] = await refusal('PATCH', path, { url: 'mailto:new@elsewhere.test' });
  assert.deepEqual([status, code], [400, 'field_invalid']);
  assert.match(sentence, /^`url`: /);

  const other = await refusal('PATCH', path, { url: 'http://127.0.0.1:9/web' });
  assert.deepEqual(other.slice(0, 2), [400, 'field_invalid']);
  assert.match(
    other[2],
    /^`url` must be mailto: with one address, because this webhook sends mail\. Create /,
  );

  await call('PATCH', path, { url: 'mailto:third@example.org' });
  const gone = await fetch(linkIn(asked, 'verify'), { method: 'POST' });
  assert.equal(gone.status, 404, 'the link was made for the address');

  const web = await call('POST', HOOKS, { webhookUrl: 'http://127.0.0.1:9/', events: ['*'] });
  const [, , why] = await refusal('PATCH', `${HOOKS}/${web.id}`, { url: 'mailto:new@example.org' });
  assert.match(why, /^`url` must be an http:\/\/ or https:\/\/ URL, because this webhook sends requests/);
});
