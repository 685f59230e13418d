/** Rotates the secret of a webhook: for a while the old secret signs too, so that the receiver can switch. */
import { Problem } from '../model/error.ts';
import type { WebhookDeps } from './deps.ts';
import { newSealedSecret, webhookSecret } from './secret.ts';

export const DEFAULT_OVERLAP_HOURS = 24;
export const MAX_OVERLAP_HOURS = 168;
const HOUR_MS = 3_600_000;

/**
 * @param input.overlapHours 0 to 168: how long deliveries carry a signature of each secret
 * @returns the new secret, and until when the old one signs too
 * @throws Problem `webhook_not_found`
 */
export async function rotateSecret(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  input: { teamId: string; id: string; overlapHours: number },
): Promise<{ secret: string; overlapUntil: number }> {
  const { teamId, id } = input;
  const overlapMs = Math.round(input.overlapHours * HOUR_MS);
  const overlapUntil = deps.store.now() + overlapMs;
  const webhook = await deps.store.webhooks.rotate({
    teamId,
    id,
    secret: newSealedSecret(deps.sealer, teamId),
    overlapMs,
  });
  if (webhook === undefined) throw new Problem('webhook_not_found');
  // Read again: of two concurrent rotations, both return the secret that is valid.
  return { secret: await webhookSecret(deps, { teamId, id }), overlapUntil };
}
