/** Single mails to all kinds of SMTP servers, over real sockets. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { type SmtpReceiver, smtpReceiver } from '../../../test/support/mail/smtp-receiver.ts';
import type { MailSender } from '../../model/messages/mail-address.ts';
import { readMailAddress } from '../../model/messages/mail-address.ts';
import { parseSmtpUrl, type SmtpServer } from '../../net/smtp-url.ts';
import { Mailer } from './mailer.ts';

const LETTER = {
  subject: 'people: 3 records changed',
  text: 'Ada → Grace\n.\n..dots\nFrom the start\n',
  html: '<p>Ada → Grace</p>\n',
};
const FROM: MailSender = { name: 'Flöw, hook', address: address('flowhook@example.com') };
const NOW = Date.UTC(2026, 10, 24, 3);

function address(text: string) {
  const found = readMailAddress(text);
  assert.ok(!('mistake' in found));
  return found;
}

function mailerTo(
  t: TestContext | undefined,
  url: string,
  more: { domains?: string[]; ca?: string; from?: MailSender } = {},
): Mailer {
  const server = parseSmtpUrl(url) as SmtpServer;
  const mailer = new Mailer({
    settings: { server, from: more.from ?? FROM, domains: more.domains },
    resolver: { resolve: async () => ['127.0.0.1'] },
    publicUrl: () => 'https://flowhook.example.net/base',
    now: () => NOW,
    ...(more.ca === undefined ? {} : { ca: more.ca }),
  });
  (t === undefined ? after : t.after.bind(t))(() => mailer.close());
  return mailer;
}

async function server(
  t: TestContext,
  options: Parameters<typeof smtpReceiver>[0] = {},
): Promise<SmtpReceiver & { url: string }> {
  const receiver = await smtpReceiver(options);
  t.after(() => receiver.close());
  return Object.assign(receiver, { url: `smtp://127.0.0.1:${receiver.port}` });
}

function sendBy(mailer: Mailer, more: object = {}) {
  return mailer.send({
    url: 'mailto:ops@example.org',
    body: JSON.stringify(LETTER),
    messageId: 'evt_1',
    unsubscribePath: '/mail/unsubscribe/token',
    timeoutMs: 5_000,
    queuedMs: 7,
    ...more,
  });
}

test('sends a letter as text and HTML, with the headers that mail programs need', async (t) => {
  const receiver = await server(t);
  const { attempt, server: name } = await sendBy(mailerTo(t, receiver.url));
  assert.deepEqual([attempt.outcome, attempt.status, attempt.error], ['ok', 250, null]);
  assert.match(attempt.response ?? '', /^250 /);
  assert.equal(name, receiver.url);
  const { from, to, headers, mail } = await receiver.mail(1);
  assert.deepEqual([from, to], ['flowhook@example.com', 'ops@example.org']);
  assert.deepEqual([mail.subject, mail.from?.name, mail.from?.address], [LETTER.subject, FROM.name, from]);
  assert.equal(
    mail.text?.replaceAll('\r\n', '\n'),
    `${LETTER.text}\nUnsubscribe: https://flowhook.example.net/base/mail/unsubscribe/token`,
  );
  assert.match(
    mail.html ?? '',
    /^<p>Ada → Grace<\/p>\s+<p .*href="https:\/\/flowhook\.example\.net\/base\/mail\/unsubscribe\/token"/,
  );
  assert.equal(headers['message-id'], '<evt_1@flowhook.example.net>');
  assert.equal(headers['auto-submitted'], 'auto-generated');
  assert.equal(headers['list-unsubscribe'], '<https://flowhook.example.net/base/mail/unsubscribe/token>');
  assert.equal(headers['list-unsubscribe-post'], 'List-Unsubscribe=One-Click');
  assert.equal(Date.parse(headers.date ?? ''), NOW);
  assert.deepEqual(attempt.details?.requestHeaders, {
    from,
    to,
    'message-id': '<evt_1@flowhook.example.net>',
  });
  assert.equal(attempt.details?.remoteAddress, '127.0.0.1');
  assert.equal(attempt.details?.url, 'mailto:ops@example.org');
});
