/** Which mail addresses of a team are verified, and how many verification mails they got. */
import { isMailUrl } from '../../../model/messages/mail-address.ts';
import { UNVERIFIED, type Webhook, WITHDRAWN } from '../../../model/webhook.ts';
import type { InTeam } from '../../rows.ts';
import type { Tx } from '../../transaction.ts';
import { changed, get, pause, WEBHOOK, type WebhookRow } from '../webhooks.ts';

/**
 * Records that the owner of the address confirmed it, and starts the webhook, and all others of the team that wait for
 * the same confirmation. Webhooks whose recipient has unsubscribed stay paused, except this one. Does nothing if the
 * webhook no longer has the URL for which the link was made.
 */
export async function verify(tx: Tx, { teamId, id, url }: OfLink): Promise<Webhook | undefined> {
  const webhook = await get(tx, { teamId, id });
  if (!isOfLink(webhook, url)) return undefined;
  const rows = await tx.db.all<WebhookRow>`
    update webhook set verified_at = ${tx.now}, state = 'active', paused_at = null, paused_reason = null,
      failing_since = null, breaker = null
    where team_id = ${teamId} and url = ${webhook.url} and substr(url, 1, 7) = 'mailto:' and state <> 'deleted'
      and verified_at is null and (id = ${id} or paused_reason = ${UNVERIFIED}) returning ${WEBHOOK}`;
  for (const row of rows) changed(tx, row);
  if (rows.length === 0) tx.repeated = true;
  return get(tx, { teamId, id });
}

/** A webhook, and the URL that it had when the link was made; undefined: the one that it has. */
type OfLink = InTeam & { url?: string };

function isOfLink(webhook: Webhook | undefined, url = webhook?.url): webhook is Webhook {
  return webhook !== undefined && isMailUrl(webhook.url) && webhook.url === url;
}

/**
 * Pauses a webhook that sends mail, because its recipient wants no more of it. It must be verified again. Does nothing if
 * the webhook no longer has the URL for which the link was made.
 */
export async function withdraw(tx: Tx, { teamId, id, url }: OfLink): Promise<Webhook | undefined> {
  const webhook = await get(tx, { teamId, id });
  if (!isOfLink(webhook, url)) return undefined;
  if (webhook.state === 'active') await pause(tx, { teamId, id, reason: WITHDRAWN });
  else tx.repeated = webhook.pausedReason === WITHDRAWN;
  const row = await tx.db.get<WebhookRow>`
    update webhook set verified_at = null, paused_reason = ${WITHDRAWN}
    where team_id = ${teamId} and id = ${id} and state = 'paused' returning ${WEBHOOK}`;
  return changed(tx, row);
}

/** Maximum numbers of verification mails within a day: of a team to one address, and of a team to all addresses. */
const MAX_VERIFICATION_MAILS = 5;
export const MAX_VERIFICATION_MAILS_OF_TEAM = 100;
const DAY_MS = 24 * 3_600_000;

/**
 * Counts a verification mail that is about to be sent for a webhook, unless its address or the addresses of the team got
 * too many within a day, also for webhooks that were unsubscribed since. Spellings that usually belong to one mailbox count
 * as one address. Undefined if the webhook does not exist.
 *
 * @param input.undone the time of a mail that was counted, but could not be sent: it is counted no longer
 */
export async function noteVerificationMail(
  tx: Tx,
  { teamId, id, undone }: InTeam & { undone?: number },
): Promise<{ isAllowed: boolean; at: number } | undefined> {
  const webhook = await get(tx, { teamId, id });
  if (webhook === undefined) return undefined;
  // Simultaneous calls for one address wait for each other.
  await tx.db.lock`
    select 1 from webhook /* use webhook_mail */
    where team_id = ${teamId} and url = ${webhook.url} and substr(url, 1, 7) = 'mailto:'
    order by id for no key update`;
  const rows = await tx.db.all<{ id: string; url: string; mails: string }>`
    select id, url, verification_mails as mails from webhook /* use webhook_mail */
    where team_id = ${teamId} and substr(url, 1, 7) = 'mailto:' and verification_mails is not null`;
  // A time in the future was written before the clock was set back.
  const recent = ({ mails }: { mails: string }) =>
    (JSON.parse(mails) as number[]).filter((at) => Math.abs(tx.now - at) < DAY_MS);
  const mailbox = mailboxOf(webhook.url);
  const ofAddress = rows.filter(({ url }) => mailboxOf(url) === mailbox).flatMap(recent).length;
  const hasRoom =
    ofAddress < MAX_VERIFICATION_MAILS && rows.flatMap(recent).length < MAX_VERIFICATION_MAILS_OF_TEAM;
  const own = rows.filter((row) => row.id === id).flatMap(recent);
  const isAllowed = undone === undefined && hasRoom;
  if (undone !== undefined) tx.repeated = true;
  const mails = undone === undefined ? [...own, tx.now] : own.toSpliced(own.indexOf(undone), 1);
  if (isAllowed || (undone !== undefined && own.includes(undone))) {
    await tx.db.run`
      update webhook set verification_mails = ${JSON.stringify(mails)}
      where team_id = ${teamId} and id = ${id}`;
  }
  return { isAllowed, at: tx.now };
}

/** What the spellings of an address have in common: letters in lower case, and no tag (`ops+tag@example.org`). */
function mailboxOf(url: string): string {
  return url.toLowerCase().replace(/(?<=:[^+@]+)\+[^@]*(?=@)/, '');
}
