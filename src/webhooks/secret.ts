/** The secret of a webhook: the key of its `v1` signatures. It is created at subscribing and stored sealed. */
import { randomBytes } from 'node:crypto';
import { Problem } from '../model/error.ts';
import type { Sealer } from '../std/seal.ts';
import type { WebhookDeps } from './deps.ts';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/**
 * The secret of a webhook in the form of Standard Webhooks 1.0: `whsec_` and the key as base64.
 *
 * @throws Problem `webhook_not_found`
 */
export async function webhookSecret(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  webhook: { teamId: string; id: string },
): Promise<string> {
  const sealed = (await deps.store.webhooks.sealed(webhook))?.secret;
  if (sealed === undefined) throw new Problem('webhook_not_found');
  return deps.sealer.open(sealed, contextOf(webhook.teamId)).toString('utf8');
}

/** A new secret, sealed for the store. */
export function newSealedSecret(sealer: Sealer, teamId: string): string {
  return sealer.seal(PREFIX + randomBytes(SECRET_BYTES).toString('base64'), contextOf(teamId));
}

/** The key in a sealed secret: the bytes that the HMAC takes. */
export function openSecretKey(sealer: Sealer, input: { teamId: string; sealed: string }): Buffer {
  const secret = sealer.open(input.sealed, contextOf(input.teamId)).toString('utf8');
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}

/** A secret is bound to its team only, because the id of the webhook does not exist yet when the secret is created. */
function contextOf(teamId: string): string {
  return `webhook-secret/${teamId}`;
}
