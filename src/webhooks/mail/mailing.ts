/** What a node does with webhooks whose URL is `mailto:…`. Nothing that sends mail is loaded before the first mail. */
import type { MailSender } from '../../model/messages/mail-address.ts';
import type { Webhook } from '../../model/webhook.ts';
import type { Resolver } from '../../net/resolver.ts';
import type { SmtpServer } from '../../net/smtp-url.ts';
import type { Clock } from '../../std/clock.ts';
import type { Sealer } from '../../std/seal.ts';
import type { Sent } from '../send.ts';
import { unsubscribePath, VERIFY_MS, verifyPath } from './mail-link.ts';
import type { Mailer, MailSettings, OutgoingMail } from './mailer.ts';

/** What a node without FLOWHOOK_SMTP_URL says instead of sending. */
const NO_SERVER =
  'This node cannot send mail, because FLOWHOOK_SMTP_URL is not set. Set it and FLOWHOOK_MAIL_FROM on every node, in the ' +
  'environment or in flowhook.yaml, and restart the service';

/** The parts of a webhook that mails depend on. */
export type MailedWebhook = Pick<Webhook, 'teamId' | 'url'> & { webhookId: string };

export interface Mailing {
  /** Null if this node has no SMTP server. */
  settings: MailSettings | null;
  /** Sends a delivery. Never rejects because of the mail or the server: every failure is the attempt's. */
  send(webhook: MailedWebhook, mail: OutgoingMail): Promise<Sent>;
  /** Sends the mail with the link that confirms the address. Never rejects because of the mail or the server. */
  sendVerification(webhook: MailedWebhook): Promise<Sent>;
  /** The mailer itself; undefined without an SMTP server. */
  mailer(): Promise<Mailer | undefined>;
  /** Closes the connections, when no mail is being sent any more. */
  close(): void;
}

/** A call of the API waits for the verification mail. */
const VERIFICATION_TIMEOUT_MS = 10_000;

/** Of a node without an SMTP server. */
export const NO_MAILING: Mailing = {
  settings: null,
  send: async ({ url }, { queuedMs }) => notSent(url, queuedMs),
  sendVerification: async ({ url }) => notSent(url, 0),
  async mailer() {
    return undefined;
  },
  close() {},
};

function notSent(url: string, queuedMs: number): Sent {
  return {
    attempt: {
      startedAt: Date.now(),
      durationMs: 0,
      outcome: 'connect',
      status: null,
      error: NO_SERVER,
      response: null,
      details: {
        url,
        requestHeaders: {},
        responseHeaders: {},
        remoteAddress: null,
        timing: { queuedMs, dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
      },
    },
    retryAfterMs: null,
    server: 'smtp',
  };
}

/**
 * @param config the settings of mail (`Config` has them)
 * @param deps.ca a certificate to trust besides the usual ones (PEM), for tests
 */
export function createMailing(
  config: {
    smtpUrl: SmtpServer | undefined;
    mailFrom: MailSender | undefined;
    mailDomains: readonly string[] | undefined;
  },
  deps: { sealer: Sealer; resolver: Resolver; publicUrl: () => string; now: Clock; ca?: string },
): Mailing {
  const { smtpUrl: server, mailFrom: from, mailDomains: domains } = config;
  if (server === undefined || from === undefined) return NO_MAILING;
  const settings = { server, from, domains };
  let opened: Promise<Mailer> | undefined;
  const mailer = () => {
    opened ??= import('./mailer.ts').then(({ Mailer }) => new Mailer({ settings, ...deps }));
    return opened;
  };
  return {
    settings,
    mailer,
    async send(webhook, mail) {
      const path = unsubscribePath(deps.sealer, webhook);
      return (await mailer()).send({ ...mail, url: webhook.url, unsubscribePath: path });
    },
    async sendVerification(webhook) {
      const nowMs = deps.now();
      const { verificationLetter } = await import('./verification-letter.ts');
      const base = deps.publicUrl();
      const letter = verificationLetter({
        installation: base,
        to: webhook.url,
        link: base + verifyPath(deps.sealer, webhook, nowMs),
        validUntil: nowMs + VERIFY_MS,
      });
      return (await mailer()).send({
        url: webhook.url,
        body: JSON.stringify(letter),
        messageId: `verify-${webhook.webhookId}-${nowMs}`,
        unsubscribePath: undefined,
        timeoutMs: VERIFICATION_TIMEOUT_MS,
        queuedMs: 0,
      });
    },
    close: () => void opened?.then((one) => one.close()),
  };
}
