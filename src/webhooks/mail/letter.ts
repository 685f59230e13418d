/** A mail as bytes: the letter that people read, with the headers that mail programs and servers expect. */

import { withFooterLink } from '../../model/messages/letter-html.ts';
import type { Letter } from '../../model/messages/mail.ts';
import type { MailAddress, MailSender } from '../../model/messages/mail-address.ts';

/** Reads the stored body of a delivery; undefined if it is no letter. */
export function readLetter(body: string): Letter | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { subject, text, html } = value as Partial<Record<keyof Letter, unknown>>;
  const isLetter = typeof subject === 'string' && typeof text === 'string' && typeof html === 'string';
  return isLetter ? { subject, text, html } : undefined;
}

/** Matches what a header must not contain: line breaks, other control characters, and changes of direction. */
const UNPRINTABLE = /[\p{Cc}\u2028-\u202e\u2066-\u2069]+/gu;
/** Longer subjects are cut, because no program shows them. */
const MAX_SUBJECT = 250;

/**
 * Writes the mail as `multipart/alternative`. Headers contain no line break from their values.
 *
 * @param input.messageId without angle brackets. Attempts of the same mail have the same one
 * @param input.unsubscribeUrl one click there ends the mails (RFC 8058); undefined for mails that nobody subscribed to
 * @param input.at the time of the `Date` header, in epoch milliseconds
 */
export async function writeMail(input: {
  from: MailSender;
  to: MailAddress;
  letter: Letter;
  messageId: string;
  unsubscribeUrl: string | undefined;
  at: number;
}): Promise<Buffer> {
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer');
  const { from, to, letter, unsubscribeUrl } = input;
  const mail = new MailComposer({
    // Not every program understands quoted names that contain an address.
    from: { name: oneLine(from.name.replaceAll(/["<>]/g, '')), address: from.address.text },
    to: { name: '', address: to.text },
    subject: oneLine(letter.subject).slice(0, MAX_SUBJECT).toWellFormed(),
    text:
      letter.text.toWellFormed() + (unsubscribeUrl === undefined ? '' : `\nUnsubscribe: ${unsubscribeUrl}\n`),
    html: withLink(letter.html.toWellFormed(), unsubscribeUrl),
    messageId: `<${input.messageId}>`,
    date: new Date(input.at),
    headers: {
      // Out-of-office replies and mailing lists leave such mails alone (RFC 3834).
      'Auto-Submitted': 'auto-generated',
      ...(unsubscribeUrl !== undefined && {
        'List-Unsubscribe': `<${unsubscribeUrl}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      }),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return mail.compile().build();
}

/** The link is also visible, because many programs do not show the header `List-Unsubscribe`. */
function withLink(html: string, url: string | undefined): string {
  return url === undefined ? html : withFooterLink(html, { url, label: 'Unsubscribe' });
}

function oneLine(text: string): string {
  return text.replaceAll(UNPRINTABLE, ' ').trim();
}
