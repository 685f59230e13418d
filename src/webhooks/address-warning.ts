/** Warns when the address policy will refuse a URL. */
import type { WebhookDeps } from './deps.ts';

/** The look-up for the warning must not delay the response for longer. */
const LOOK_UP_MS = 1_000;

/**
 * A sentence, or '' when nothing is wrong. IP literals and `localhost` are checked at once, other names within a second;
 * a look-up that fails or takes longer gives no warning.
 */
export async function addressWarning(
  deps: Pick<WebhookDeps, 'policy' | 'resolver'>,
  url: string,
  team?: string,
): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string[]>((resolve) => {
    timer = setTimeout(() => resolve([]), LOOK_UP_MS);
  });
  try {
    const addresses = await Promise.race([deps.resolver.resolve(new URL(url).hostname, team), late]);
    for (const address of addresses) {
      const verdict = deps.policy.verdict(address);
      if (!verdict.allowed) return `Deliveries will be refused: ${verdict.why}.`;
    }
  } catch {
    // The name may resolve by the time something is sent.
  } finally {
    clearTimeout(timer);
  }
  return '';
}
