/** Formats a delivery as a `curl` command with a new signature. */
import { mediaTypeOf } from '../model/delivery.ts';
import { Problem } from '../model/error.ts';
import { isMailUrl } from '../model/messages/mail-address.ts';
import { toIso } from '../std/clock.ts';
import { HIDDEN } from './destination.ts';
import { headerNames, openSecretKey, type WebhookDeps } from './sealed.ts';
import { signatureHeaders } from './sign.ts';
import { openSigningKey } from './signing-keys.ts';

/** How long receivers accept a signature, according to Standard Webhooks 1.0. */
const SIGNATURE_VALID_MS = 300_000;

interface DeliveryCommand {
  /** The command for a POSIX shell, on several lines. */
  command: string;
  /**
   * Names of the headers that the command contains with the value `***`, because these values are never shown. The user
   * must fill them in.
   */
  hidden: string[];
  /** When receivers stop accepting the signature, in ISO 8601. */
  validUntil: string;
}

/**
 * Returns a command that sends the event of a delivery to its webhook again. The service neither counts nor logs the
 * request of the command.
 *
 * @throws Problem `delivery_not_found`, also if the webhook of the delivery has been unsubscribed; `field_invalid` for a
 *   mail
 */
export async function deliveryCommand(
  deps: Pick<WebhookDeps, 'store' | 'sealer' | 'log'>,
  { teamId, id }: { teamId: string; id: string },
): Promise<DeliveryCommand> {
  const { store, sealer } = deps;
  const delivery = await store.deliveries.get({ teamId, id });
  if (delivery === undefined) throw new Problem('delivery_not_found');
  const of = { teamId, id: delivery.webhookId };
  const webhook = await store.webhooks.get(of);
  const sealed = (await store.webhooks.sealed(of))?.secret;
  if (webhook === undefined || sealed === undefined) {
    throw new Problem('delivery_not_found', {
      sentence: 'The webhook of this delivery has been unsubscribed, so the request cannot be signed',
    });
  }
  if (isMailUrl(webhook.url)) {
    throw new Problem('field_invalid', {
      sentence:
        'This delivery is a mail, which no command can send as a request. Send it again with POST /v1/deliveries/{deliveryId}/replay',
    });
  }
  const url = new URL(webhook.url);
  // The set removes duplicates, because a custom header may also be named `authorization`.
  const hidden = [
    ...new Set([
      ...(url.username + url.password === '' ? [] : ['authorization']),
      ...((await headerNames(deps, of)) ?? []).map((name) => name.toLowerCase()),
    ]),
  ];
  const now = store.now();
  const { body } = delivery;
  const timestamp = Math.floor(now / 1_000);
  const signingKey = (await store.teams.signingKeys({ teamId })).at(-1)?.privateKey;
  const signature = await signatureHeaders(
    { id: delivery.messageId ?? delivery.eventId, timestamp, body },
    {
      secrets: [openSecretKey(sealer, { teamId, sealed })],
      privateKey: signingKey === undefined ? null : openSigningKey(sealer, { teamId, sealed: signingKey }),
    },
  );
  const headers = {
    ...Object.fromEntries(hidden.map((name) => [name, HIDDEN])),
    'content-type': mediaTypeOf(body),
    ...signature,
    'webhook-event': delivery.eventType,
    'webhook-attempt': String(Math.max(1, delivery.attempt)),
  };
  const lines = [
    // Without `--globoff`, curl would expand brackets and braces in the URL.
    `curl -sS -i --globoff -X POST ${quoted(url.origin + url.pathname + url.search)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    `--data-binary ${quoted(body)}`,
  ];
  return { command: lines.join(' \\\n  '), hidden, validUntil: toIso(now + SIGNATURE_VALID_MS) };
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
