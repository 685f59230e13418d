/** The mail that asks the owner of an address whether Flowhook may send notices there. */
import { type Letter, letterOf } from '../../model/messages/mail.ts';
import { readMailUrl } from '../../model/messages/mail-address.ts';
import { zonedTime } from '../../model/messages/zoned-time.ts';

/**
 * Contains no text that users choose, such as the name of the webhook: otherwise anybody with a key could send mails with
 * their own words to strangers.
 *
 * @param input.installation the URL of the service
 * @param input.to the `mailto:` URL
 */
export function verificationLetter(input: {
  installation: string;
  to: string;
  link: string;
  validUntil: number;
}): Letter {
  const { installation, link, validUntil } = input;
  const to = readMailUrl(input.to);
  const address = 'mistake' in to ? 'this address' : to.text;
  const { host } = new URL(installation);
  return letterOf({
    tone: 'info',
    title: `Confirm notices from Flowhook at ${host}`,
    summary: `Somebody who uses Flowhook at ${host} wants it to send notices to ${address}. If you want them, confirm it. If you do not, ignore this mail: nothing more is sent.`,
    url: link,
    action: 'Confirm this address',
    facts: [{ name: 'Valid until', value: zonedTime(validUntil, 'UTC') }],
    groups: [],
    log: null,
    footer: `Sent by Flowhook at ${installation}, which somebody asked to send you mail.`,
    footerUrl: null,
  });
}
