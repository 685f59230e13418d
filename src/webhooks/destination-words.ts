/** What the response to a call says about the new destination of a webhook. */
import { Problem } from '../model/error.ts';
import type { Webhook } from '../model/webhook.ts';
import { within } from '../std/clock.ts';
import { sendVerification } from './mail/verification.ts';
import type { WebhookDeps } from './sealed.ts';

/**
 * Sends the verification mail of a webhook with a new address that is not verified yet, and says so. Without `isNew`, says
 * how to send the mail again.
 */
export async function verificationWords(
  deps: WebhookDeps,
  webhook: Webhook,
  { isNew }: { isNew: boolean },
): Promise<string[]> {
  if (webhook.verifiedAt !== null) return [];
  if (!isNew) {
    return [
      `Its address is not verified: POST /v1/integrations/webhooks/${webhook.id}/verify sends the mail again.`,
    ];
  }
  try {
    const { message } = await sendVerification(deps, webhook);
    return ['It is paused until its address is verified.', message];
  } catch (error) {
    // The webhook exists, so the call succeeds all the same.
    if (error instanceof Problem) return ['It is paused until its address is verified.', `${error.message}.`];
    throw error;
  }
}

/** The warning's DNS lookup delays the response for at most this long. */
const LOOK_UP_MS = 1_000;

/**
 * A warning if the address policy rejects the URL; otherwise ''. IP literals and `localhost` are checked immediately.
 * Other names are looked up; a DNS lookup that fails or takes longer than a second causes no warning.
 */
export async function addressWarning(
  deps: Pick<WebhookDeps, 'policy' | 'resolver'>,
  url: string,
  team?: string,
): Promise<string> {
  try {
    const looked = deps.resolver.resolve(new URL(url).hostname, team);
    const addresses = await within(LOOK_UP_MS, looked, () => []);
    for (const address of addresses) {
      const verdict = deps.policy.verdict(address);
      if (!verdict.allowed) return `Deliveries will be refused: ${verdict.why}.`;
    }
  } catch {
    // A failed DNS lookup causes no warning, because the name may resolve by the time an event is sent.
  }
  return '';
}
