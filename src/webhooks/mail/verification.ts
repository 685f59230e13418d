/** Confirming that the owner of an address wants its mails, before the first of them. */
import { found, Problem } from '../../model/error.ts';
import { isMailUrl, type MailAddress, mailUrl, readMailUrl } from '../../model/messages/mail-address.ts';
import type { Webhook } from '../../model/webhook.ts';
import type { WebhookDeps } from '../sealed.ts';
import { NO_MAILING } from './mailing.ts';

type Deps = Pick<WebhookDeps, 'store' | 'mailing'>;

/**
 * The URL of a new webhook in the form in which it is stored: `mailto:` URLs of equal addresses are equal.
 *
 * @param url valid (`destinationMistake`)
 * @param field the name of the URL in the request
 * @throws Problem `mail_unavailable` if this node cannot send mail, `field_invalid` if it may not send to this domain
 */
export async function storedDestination(
  { mailing = NO_MAILING }: Pick<Deps, 'mailing'>,
  url: string,
  field = 'webhookUrl',
): Promise<string> {
  if (!isMailUrl(url)) return url;
  const mailer = await mailing.mailer();
  if (mailer === undefined) throw new Problem('mail_unavailable');
  const address = addressOf(url);
  const refusal = mailer.refusal(address);
  if (refusal !== undefined) throw new Problem('field_invalid', { sentence: `\`${field}\`: ${refusal}` });
  return mailUrl(address);
}

/**
 * Sends the mail with the link that confirms the address of a webhook, now and only once.
 *
 * @returns a sentence that says what happened; `error` is why the mail could not be sent, null if it was
 * @throws Problem `field_invalid` if the webhook sends no mail, `mail_unavailable`, `verification_limit`,
 *   `webhook_not_found`
 */
export async function sendVerification(
  { store, mailing = NO_MAILING }: Deps,
  { teamId, id, url, verifiedAt }: Webhook,
): Promise<{ message: string; error: string | null }> {
  if (!isMailUrl(url)) {
    throw new Problem('field_invalid', {
      sentence: 'Only a webhook that sends mail has an address to verify, and this one has an http URL',
    });
  }
  const { text: address } = addressOf(url);
  if (verifiedAt !== null) return { message: `${address} is already verified.`, error: null };
  if (mailing.settings === null) throw new Problem('mail_unavailable');
  const noted = found(await store.webhooks.noteVerificationMail({ teamId, id }), 'webhook_not_found');
  if (!noted.isAllowed) throw new Problem('verification_limit');
  const { attempt } = await mailing.sendVerification({ teamId, webhookId: id, url });
  if (attempt.outcome === 'ok') {
    return { message: `A mail with a link to confirm was sent to ${address}.`, error: null };
  }
  const error = attempt.error ?? '';
  // A mail that was transferred without a reply may have arrived.
  if (attempt.outcome !== 'timeout') {
    await store.webhooks.noteVerificationMail({ teamId, id, undone: noted.at });
  }
  const again = `POST /v1/integrations/webhooks/${id}/verify sends it again`;
  return { message: `The verification mail could not be sent. ${again}. ${ended(error)}`, error };
}

function ended(sentence: string): string {
  return /[.?"]$/.test(sentence) ? sentence : `${sentence}.`;
}

function addressOf(url: string): MailAddress {
  const address = readMailUrl(url);
  if ('mistake' in address)
    throw new Problem('field_invalid', { sentence: `\`webhookUrl\` ${address.mistake}` });
  return address;
}
