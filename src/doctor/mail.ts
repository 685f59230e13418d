/** The check of mail: connects to the SMTP server and signs in, without sending anything. */
import { createResolver } from '../net/resolver.ts';
import { Mailer } from '../webhooks/mail/mailer.ts';
import { type Check, error, ofSettings, ok, skipped, warning } from './check.ts';

const CONNECT_MS = 10_000;

export const mail: Check = ofSettings(
  'network',
  'mail',
  async ({ smtpUrl: server, mailFrom: from }, { clock }) => {
    if (server === undefined || from === undefined) {
      return skipped('Not checked', 'FLOWHOOK_SMTP_URL is not set, so webhooks cannot send mail');
    }
    const mailer = new Mailer({
      settings: { server, from, domains: undefined },
      resolver: createResolver(),
      publicUrl: () => 'http://localhost',
      now: clock,
    });
    const mistake = await mailer.check(CONNECT_MS);
    mailer.close();
    if (mistake !== undefined) {
      return error({
        what: `The SMTP server ${server.name} cannot be used: ${mistake}`,
        why: 'Webhooks that send mail fail, and addresses cannot be verified',
        fix: 'Correct FLOWHOOK_SMTP_URL, or ask the operator of the SMTP server',
      });
    }
    if (server.login !== null && server.tls === 'off') {
      return warning({
        what: `The password for ${server.name} is sent without TLS`,
        why: 'Anybody on the way to the server can read it',
        fix: 'Remove `?tls=off` from FLOWHOOK_SMTP_URL, or use smtps://',
      });
    }
    return ok(`Mail is sent through ${server.name}, from ${from.address.text}`);
  },
);
