/** Single mails to all kinds of SMTP servers, over real sockets. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import {
  type Reply,
  reply,
  type SmtpReceiver,
  smtpReceiver,
  wordedServer,
} from '../../../test/support/mail/smtp-receiver.ts';
import { certificateAuthority } from '../../../test/support/net/certificates.ts';
import type { MailSender } from '../../model/messages/mail-address.ts';
import { readMailAddress } from '../../model/messages/mail-address.ts';
import { ResolveError } from '../../net/resolver.ts';
import { parseSmtpUrl, type SmtpServer } from '../../net/smtp-url.ts';
import { Mailer } from './mailer.ts';

const LETTER = {
  subject: 'people: 3 records changed',
  text: 'Ada → Grace\n.\n..dots\nFrom the start\n',
  html: '<p>Ada → Grace<!-- links --></p>\n',
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
    resolver: {
      async resolve(name) {
        if (name === 'nowhere.test') throw new ResolveError(`${name} has no address`);
        return ['127.0.0.1'];
      },
    },
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
    /^<p>Ada → Grace · <a .*href="https:\/\/flowhook\.example\.net\/base\/mail\/unsubscribe\/token"/,
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

test('sends several mails on one connection, and opens another one if the server closed it meanwhile', async (t) => {
  const receiver = await server(t);
  const mailer = mailerTo(t, receiver.url);
  const first = await sendBy(mailer);
  const second = await sendBy(mailer, { messageId: 'evt_2' });
  assert.equal(receiver.connections, 1);
  assert.notEqual(first.attempt.details?.timing.connectMs, null);
  assert.equal(second.attempt.details?.timing.connectMs, null, 'reused');
  receiver.hangUp();
  const { attempt } = await sendBy(mailer, { messageId: 'evt_3' });
  assert.equal(attempt.outcome, 'ok');
  assert.deepEqual([receiver.connections, receiver.mails.length], [2, 3]);
});

test('after a refusal, the next mail uses the same connection', async (t) => {
  const replies = [reply(550, '5.7.1 Content refused'), reply(451, '4.7.1 Greylisted')];
  const receiver = await server(t, { onMail: () => replies.shift() });
  const mailer = mailerTo(t, receiver.url);
  const outcomes = [];
  for (const _ of [1, 2, 3]) outcomes.push((await sendBy(mailer)).attempt.status);
  assert.deepEqual(outcomes, [550, 451, 250]);
  assert.equal(receiver.connections, 1);
});

test('at most eight connections are open at the same time, and further mails wait for one', async (t) => {
  const held: (() => void)[] = [];
  const full = Promise.withResolvers<void>();
  const receiver = await server(t, {
    onMail: () =>
      new Promise((resolve) => {
        held.push(() => resolve(undefined));
        if (held.length === 8) full.resolve();
      }),
  });
  const mailer = mailerTo(t, receiver.url);
  const sent = Promise.all(Array.from({ length: 20 }, (_, n) => sendBy(mailer, { messageId: `evt_${n}` })));
  await full.promise;
  assert.equal(receiver.connections, 8);
  // Each mail that ends lets the next one in.
  const release = setInterval(() => held.shift()?.(), 1);
  t.after(() => clearInterval(release));
  const outcomes = (await sent).map(({ attempt }) => attempt.outcome);
  assert.deepEqual(new Set(outcomes), new Set(['ok']));
  assert.equal(new Set(receiver.mails.map(({ headers }) => headers['message-id'])).size, 20);
  assert.ok(receiver.connections <= 20);
});

const authority = certificateAuthority();

test('uses STARTTLS and signs in, and never sends a password in plain text', {
  skip: authority === undefined,
}, async (t) => {
  const { key, cert } = authority?.issue({ host: 'mail.test', days: 2 }) ?? {};
  const onAuth = (
    { username, password }: { username?: string; password?: string },
    _: unknown,
    done: (error: Error | null, result?: { user: string }) => void,
  ) => (password === 'p@ss/word' ? done(null, { user: username ?? '' }) : done(reply(535, '5.7.8 Wrong')));
  const secure = { key, cert, onAuth };
  const receiver = await server(t, secure as never);
  const url = (login: string, port = receiver.port) => `smtp://${login}@mail.test:${port}`;
  const ca = authority?.cert ?? '';
  const ok = await sendBy(mailerTo(t, url('flow%40hook:p%40ss%2Fword'), { ca }));
  assert.equal(ok.attempt.error, null);
  const [mail] = receiver.mails;
  assert.deepEqual([mail?.isSecure, mail?.user], [true, 'flow@hook']);
  assert.notEqual(ok.attempt.details?.timing.tlsMs, null);

  const wrong = await sendBy(mailerTo(t, url('flow%40hook:wrong-password'), { ca }));
  assert.deepEqual([wrong.attempt.outcome, wrong.attempt.status], ['connect', 535]);
  assert.match(wrong.attempt.error ?? '', /refused the user or the password\. Correct FLOWHOOK_SMTP_URL/);
  assert.doesNotMatch(JSON.stringify(wrong), /wrong-password/);

  const untrusted = await sendBy(mailerTo(t, url('a:b')));
  assert.equal(untrusted.attempt.outcome, 'tls');
  assert.match(
    untrusted.attempt.error ?? '',
    /^The SMTP server's certificate was issued by an unknown authority.*NODE_EXTRA_CA_CERTS/,
  );
  const unverified = await sendBy(mailerTo(t, `${url('flow%40hook:p%40ss%2Fword')}?tls=unverified`));
  assert.equal(unverified.attempt.outcome, 'ok');

  // Somebody on the way suppresses STARTTLS.
  const stripped = await wordedServer({
    EHLO: '250-mail.test\r\n250 AUTH PLAIN LOGIN',
    STARTTLS: '502 5.5.1 Unknown command',
  });
  t.after(() => stripped.close());
  const plain = await sendBy(mailerTo(t, url('flow%40hook:p%40ss%2Fword', stripped.port), { ca }));
  assert.equal(plain.attempt.outcome, 'tls');
  assert.match(plain.attempt.error ?? '', /does not begin TLS, which FLOWHOOK_SMTP_URL requires/);
  assert.doesNotMatch(stripped.heard.join(' '), /AUTH|MAIL/);
});

test('smtps:// begins with TLS, and ?tls=off uses none', { skip: authority === undefined }, async (t) => {
  const { key, cert } = authority?.issue({ host: 'mail.test', days: 2 }) ?? {};
  const receiver = await server(t, { secure: true, key, cert } as never);
  const tls = await sendBy(mailerTo(t, `smtps://mail.test:${receiver.port}`, { ca: authority?.cert ?? '' }));
  assert.equal(tls.attempt.outcome, 'ok');
  assert.equal(receiver.mails[0]?.isSecure, true);
  const offered = await server(t, { key, cert } as never);
  assert.equal((await sendBy(mailerTo(t, `smtp://mail.test:${offered.port}?tls=off`))).attempt.outcome, 'ok');
  assert.equal(offered.mails[0]?.isSecure, false);
  // A server on this machine usually has a certificate for another name.
  assert.equal((await sendBy(mailerTo(t, offered.url))).attempt.outcome, 'ok');
  assert.equal(offered.mails[1]?.isSecure, true);
});

const HUGE = '250-'.padEnd(2_000, 'x');
const FAILURES: [
  name: string,
  answers: Record<string, Reply>,
  outcome: string,
  status: number | null,
  words: RegExp,
][] = [
  [
    'refuses the connection',
    { greeting: '554 5.7.1 Blocked' },
    'connect',
    554,
    /refused the connection.*Blocked/,
  ],
  ['is busy', { greeting: '421 Too many connections' }, 'connect', 421, /refused the connection.*Too many/],
  [
    'greets in another language',
    { greeting: 'HTTP/1.1 400 Bad Request' },
    'protocol',
    null,
    /not valid.*HTTP\/1\.1/,
  ],
  [
    'never greets',
    { greeting: 'hang' },
    'timeout',
    null,
    /did not begin the conversation within 0\.3 s.*smtps/,
  ],
  [
    'hangs up before the greeting',
    { greeting: 'drop' },
    'protocol',
    null,
    /before the conversation began.*smtps/,
  ],
  [
    'requires authentication',
    { MAIL: '530 5.7.0 Authentication required' },
    'connect',
    530,
    /Add a user and a password/,
  ],
  [
    'refuses the sender',
    { MAIL: '553 5.7.1 Not your address' },
    'smtp',
    553,
    /refused the sender\. Set FLOWHOOK_MAIL_FROM/,
  ],
  [
    'refuses the recipient',
    { RCPT: '550 5.1.1 Nobody here' },
    'smtp',
    550,
    /refused the recipient\. Check the address.*Nobody here/,
  ],
  [
    'defers the recipient',
    { RCPT: '450 4.2.0 Greylisted' },
    'smtp',
    450,
    /asked to send the mail later.*Greylisted/,
  ],
  ['refuses DATA', { DATA: '554 No valid recipients' }, 'smtp', 554, /refused the mail/],
  ['refuses the mail', { '.': '554 5.7.1 Spam' }, 'smtp', 554, /refused the mail.*Spam/],
  ['is in the wrong state', { '.': '503 Bad sequence' }, 'smtp', 503, /Bad sequence/],
  [
    'ends the conversation',
    { '.': '421 Shutting down' },
    'smtp',
    421,
    /asked to send the mail later.*Shutting down/,
  ],
  [
    'hangs up in the middle of the mail',
    { message: 'drop' },
    'protocol',
    null,
    /while the mail was being transferred|after the mail/,
  ],
  [
    'hangs up after the mail, without a reply',
    { '.': 'drop' },
    'protocol',
    null,
    /after the mail, without a reply, so it may have accepted it.*same Message-ID/,
  ],
  [
    'never replies to the mail',
    { '.': 'hang' },
    'timeout',
    null,
    /transferred, but the SMTP server did not reply within 0\.3 s, so it may have accepted it/,
  ],
  [
    'never replies to the recipient',
    { RCPT: 'hang' },
    'timeout',
    null,
    /did not reply to the sender and the recipient/,
  ],
  [
    'replies endlessly',
    { '.': (socket) => void socket.write(`${HUGE}\r\n`.repeat(40)) },
    'protocol',
    null,
    /more than 64 KiB/,
  ],
  [
    'replies without an end of the line',
    { '.': (socket) => void socket.write('2'.repeat(100_000)) },
    'protocol',
    null,
    /more than 64 KiB/,
  ],
  ['replies with nonsense', { '.': 'what?' }, 'protocol', null, /not valid.*what\?/],
  ['replies with control characters', { '.': '554 \u001b[31mred\u0007' }, 'smtp', 554, /: "\[31mred"$/],
];

for (const [name, answers, outcome, status, words] of FAILURES) {
  test(`reports a server that ${name}`, async (t) => {
    const worded = await wordedServer(answers);
    t.after(() => worded.close());
    const { attempt } = await sendBy(mailerTo(t, `smtp://127.0.0.1:${worded.port}`), { timeoutMs: 300 });
    assert.deepEqual([attempt.outcome, attempt.status], [outcome, status], attempt.error ?? '');
    assert.match(attempt.error ?? '', words);
  });
}

test('reports a server that does not exist, by name or by address', async (t) => {
  const closed = await wordedServer({});
  await closed.close();
  const refused = await sendBy(mailerTo(t, `smtp://127.0.0.1:${closed.port}`));
  assert.deepEqual([refused.attempt.outcome, refused.attempt.status], ['connect', null]);
  assert.match(refused.attempt.error ?? '', /nothing listens on this address and port/);
  const unknown = await sendBy(mailerTo(t, 'smtp://nowhere.test:25'));
  assert.equal(unknown.attempt.outcome, 'dns');
});

test('an attempt that is aborted ends immediately, in any step', async (t) => {
  for (const answers of [{ greeting: 'hang' }, { RCPT: 'hang' }, { '.': 'hang' }] as const) {
    const worded = await wordedServer(answers);
    t.after(() => worded.close());
    const abort = new AbortController();
    const sent = sendBy(mailerTo(t, `smtp://127.0.0.1:${worded.port}`), { signal: abort.signal });
    setImmediate(() => abort.abort(new Error('The service stops')));
    assert.notEqual((await sent).attempt.outcome, 'ok');
  }
});

test('nothing of a letter, a name or an address becomes a header or a command', async (t) => {
  const receiver = await server(t);
  const evil = '\r\nBcc: evil@example.com\r\n\r\n.\r\nRCPT TO:<evil@example.com>\r\n';
  const from = { name: `A${evil}"<x@y.z>`, address: FROM.address };
  // The ends of data that servers have misread: bare line feeds, bare carriage returns.
  const smuggled = ['\n.\n', '\r.\r', '\n.\r\n', '\r\n.\r', '\r\n.\n'].map(
    (end) => `before${end}MAIL FROM:<evil@example.com>${end}after`,
  );
  const letter = { subject: `Hi${evil}`, text: [evil, ...smuggled].join('\n'), html: smuggled.join('') };
  const { attempt } = await sendBy(mailerTo(t, receiver.url, { from }), { body: JSON.stringify(letter) });
  assert.equal(attempt.error, null);
  assert.equal(receiver.mails.length, 1);
  const [received] = receiver.mails;
  assert.equal(received?.to, 'ops@example.org');
  assert.equal(received?.headers.bcc, undefined);
  assert.equal(received?.mail.from?.address, FROM.address.text);
  assert.match(received?.mail.subject ?? '', /^Hi Bcc: evil@example\.com \. RCPT TO:<evil@example\.com>$/);
  assert.equal(received?.mail.text?.match(/after/g)?.length, smuggled.length);
  assert.doesNotMatch(received?.raw ?? '', /(?<!\r)\n|\r(?!\n)/, 'bare line ends');
});

test('an address with letters beyond ASCII arrives if the server offers SMTPUTF8, and its domain is always ASCII', async (t) => {
  const receiver = await server(t);
  const url = 'mailto:zoë@jõgeva.ee';
  assert.equal(
    (await sendBy(mailerTo(t, receiver.url), { url: 'mailto:zoe@jõgeva.ee' })).attempt.outcome,
    'ok',
  );
  // This server shows domains as people write them.
  assert.equal(receiver.mails[0]?.to, 'zoe@jõgeva.ee');
  assert.match(receiver.mails[0]?.headers.to ?? '', /zoe@xn--jgeva-dua\.ee/);
  assert.equal((await sendBy(mailerTo(t, receiver.url), { url })).attempt.error, null);
  assert.match(receiver.mails[1]?.to ?? '', /^zoë@/);
  const old = await wordedServer({ EHLO: '250-mail.test\r\n250 SIZE' });
  t.after(() => old.close());
  const { attempt } = await sendBy(mailerTo(t, `smtp://127.0.0.1:${old.port}`), { url });
  assert.match(attempt.error ?? '', /does not offer SMTPUTF8/);
  assert.doesNotMatch(old.heard.join(' '), /RCPT/);
});

test('mail goes only to allowed domains and their subdomains', async (t) => {
  const receiver = await server(t);
  const mailer = mailerTo(t, receiver.url, { domains: ['example.org', 'b.test'] });
  const outcomes = [];
  for (const to of ['a@example.org', 'a@sub.B.test', 'a@notexample.org', 'a@example.org.evil.test']) {
    const { attempt } = await sendBy(mailer, { url: `mailto:${to}` });
    outcomes.push(attempt.outcome);
    if (attempt.outcome === 'blocked') assert.match(attempt.error ?? '', /FLOWHOOK_MAIL_DOMAINS/);
  }
  assert.deepEqual(outcomes, ['ok', 'ok', 'blocked', 'blocked']);
});

test('a body that is no letter is not sent', async (t) => {
  const receiver = await server(t);
  const mailer = mailerTo(t, receiver.url);
  for (const body of [
    '{"type":"webhook_test"}',
    '"[erased]"',
    '[]',
    'null',
    '{',
    '{"subject":"a","text":{"path":"/etc/passwd"},"html":""}',
  ]) {
    const { attempt } = await sendBy(mailer, { body });
    assert.equal(attempt.outcome, 'protocol', body);
  }
  assert.match((await sendBy(mailer, { body: '"[erased]"' })).attempt.error ?? '', /was erased/);
  assert.equal(receiver.connections, 0);
});
