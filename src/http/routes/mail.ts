/** Verifying the addresses of webhooks that send mail, and the pages behind the links in mails. */
import { found, Problem } from '../../model/error.ts';
import { isMailUrl, readMailUrl } from '../../model/messages/mail-address.ts';
import { type Webhook, WITHDRAWN } from '../../model/webhook.ts';
import { shownWebhook, webhookDetailResource } from '../../resources/webhook.ts';
import { object, text } from '../../std/shape.ts';
import { authoredBy } from '../../store/audited.ts';
import { isGenuine, type MailLinkPurpose, readMailToken } from '../../webhooks/mail/mail-link.ts';
import { sendVerification } from '../../webhooks/mail/verification.ts';
import { sendMailPage } from '../mail-page.ts';
import { jsonResponse, messageWith } from '../openapi/content.ts';
import { type Call, type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { authorOf } from '../server/caller.ts';
import { prefersHtml } from '../ui/pages.ts';
import { webhookOf } from './webhooks.ts';

/** POST /v1/integrations/webhooks/{webhookId}/verify */
export const verifyWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'verifyWebhook',
  group: 'Integrations',
  summary: 'Send the verification mail again',
  description:
    'Sends the mail with the link that confirms the address of a webhook that sends mail: at most five to an address, and ' +
    'a hundred by a team, within 24 hours. Does nothing if the address is already verified.',
  parameters: [pathParameter('webhookId', 'Webhook ID')],
  answer: jsonResponse('Verification mail sent', messageWith('webhook', webhookDetailResource)),
  errors: {
    field_invalid: 'The webhook sends no mail',
    mail_unavailable: 'This node has no SMTP server',
    mail_failed: 'The SMTP server cannot be reached, or refused the mail',
    verification_limit:
      'Five verification mails were sent to this address, or a hundred by the team, within 24 hours',
    webhook_not_found: 'No webhook found',
  },

  async handle(call) {
    const { services } = call;
    const { message, error } = await sendVerification(services.webhooks, await webhookOf(call));
    if (error !== null) throw new Problem('mail_failed', { sentence: message });
    return { message, webhook: await shownWebhook(services.webhooks, await webhookOf(call)) };
  },
};

const TOKEN = [pathParameter('mailToken', 'Signed token of the link')];
const page = {
  description: 'A page for people, or for other clients than browsers a JSON object with `message`',
  content: {
    'text/html': { schema: { type: 'string' } },
    ...jsonResponse('', object({ message: text() })).content,
  },
};
const shared = {
  group: 'Integrations',
  open: true,
  parameters: TOKEN,
  answer: page,
  errors: {
    mail_link_invalid: 'The link is not complete, or its webhook was unsubscribed',
    mail_link_expired: 'The link was valid for seven days',
  },
} as const;

/** What the pages of one kind of link say, and what their button does. */
interface LinkKind {
  purpose: MailLinkPurpose;
  isDone(webhook: Webhook): boolean;
  ask(address: string): { title: string; text: string; button: string };
  done(address: string): { title: string; text: string };
  act(call: Call<'webhooks'>, webhook: Webhook): Promise<Webhook | undefined>;
}

const storeOf = ({ services, request }: Call) =>
  authoredBy(services.store, authorOf(request, { kind: 'unknown', id: null }));

const VERIFY: LinkKind = {
  purpose: 'verify',
  isDone: ({ verifiedAt }) => verifiedAt !== null,
  ask: (address) => ({
    title: 'Confirm this address',
    text: `Flowhook is asked to send notices to ${address}. Confirm this if you want to receive them.`,
    button: 'Send me notices',
  }),
  done: (address) => ({
    title: 'The address is confirmed',
    text: `Flowhook sends notices to ${address}. Each of them has a link to unsubscribe.`,
  }),
  act: (call, { teamId, id, url }) => storeOf(call).webhooks.verify({ teamId, id, url }),
};

const UNSUBSCRIBE: LinkKind = {
  purpose: 'unsubscribe',
  isDone: ({ pausedReason }) => pausedReason === WITHDRAWN,
  ask: (address) => ({
    title: 'Unsubscribe',
    text: `Flowhook sends these notices to ${address}. Do you want no more of them?`,
    button: 'Unsubscribe',
  }),
  done: (address) => ({
    title: 'Unsubscribed',
    text: `Flowhook sends no more of these notices to ${address}. To receive them again, ask the person who set them up to verify the address.`,
  }),
  act: (call, { teamId, id, url }) => storeOf(call).webhooks.withdraw({ teamId, id, url }),
};

/** GET /mail/verify/{mailToken} */
export const readVerification: Operation<Call<'webhooks'>> = {
  ...shared,
  id: 'readVerification',
  summary: 'Open the page that confirms an address',
  description: 'Changes nothing, because programs that check the links in mails follow them.',
  handle: (call) => answered(call, VERIFY, false),
};

/** POST /mail/verify/{mailToken} */
export const confirmAddress: Operation<Call<'webhooks'>> = {
  ...shared,
  id: 'confirmAddress',
  summary: 'Confirm an address',
  description:
    'Marks the address as verified, and starts the webhook and all others of the team that wait for the same address.',
  handle: (call) => answered(call, VERIFY, true),
};

/** GET /mail/unsubscribe/{mailToken} */
export const readUnsubscription: Operation<Call<'webhooks'>> = {
  ...shared,
  id: 'readUnsubscription',
  summary: 'Open the page that ends mails',
  description: 'Changes nothing, because programs that check the links in mails follow them.',
  handle: (call) => answered(call, UNSUBSCRIBE, false),
};

/** POST /mail/unsubscribe/{mailToken} */
export const endMails: Operation<Call<'webhooks'>> = {
  ...shared,
  id: 'endMails',
  summary: 'End the mails of a webhook',
  description:
    'Pauses the webhook until its address is verified again. Mail programs send this request for the header ' +
    '`List-Unsubscribe` (RFC 8058).',
  handle: (call) => answered(call, UNSUBSCRIBE, true),
};

async function answered(call: Call<'webhooks'>, kind: LinkKind, acts: boolean): Promise<unknown> {
  const isPerson = prefersHtml(call.request.headers.accept);
  let shown: { title: string; text: string; button?: string };
  try {
    const before = await linked(call, kind.purpose);
    const webhook = acts ? found(await kind.act(call, before), 'mail_link_invalid') : before;
    const address = readMailUrl(webhook.url);
    const to = 'mistake' in address ? webhook.url : address.text;
    shown = kind.isDone(webhook) ? kind.done(to) : kind.ask(to);
  } catch (error) {
    if (!isPerson || !(error instanceof Problem)) throw error;
    const { message, status } = error;
    return sendMailPage(call, { title: 'This link does not work', text: message, status });
  }
  return isPerson ? sendMailPage(call, shown) : { message: shown.text };
}

/**
 * The webhook of the link.
 *
 * @throws Problem `mail_link_invalid`, `mail_link_expired`
 */
async function linked({ services, params }: Call<'webhooks'>, purpose: MailLinkPurpose): Promise<Webhook> {
  const { store, sealer } = services.webhooks;
  const token = found(readMailToken(params.mailToken ?? ''), 'mail_link_invalid');
  const { teamId, webhookId: id, expiresAt } = token;
  const webhook = await store.webhooks.get({ teamId, id });
  if (webhook === undefined || !isMailUrl(webhook.url) || !isGenuine(sealer, purpose, token, webhook.url)) {
    throw new Problem('mail_link_invalid');
  }
  if (expiresAt !== 0 && expiresAt <= store.now()) throw new Problem('mail_link_expired');
  return webhook;
}
