/** Says beforehand whether network policy will refuse an address. */
import type { WebhookDeps } from './deps.ts';

/** Looking up a name for the message must not hold up the answer for longer. */
const LOOK_UP_MS = 1_000;

/**
 * The sentence, or nothing. Judges literals and `localhost` at once and other names within a second; a failing look-up is not mentioned.
 */
export async function addressWarning(
  deps: Pick<WebhookDeps, 'policy' | 'resolver'>,
  url: string,
): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string[]>((resolve) => {
    timer = setTimeout(() => resolve([]), LOOK_UP_MS);
  });
  try {
    const addresses = await Promise.race([deps.resolver.resolve(new URL(url).hostname), late]);
    for (const address of addresses) {
      const verdict = deps.policy.verdict(address);
      if (!verdict.allowed) return `Deliveries will be refused: ${verdict.why}.`;
    }
  } catch {
    // Whether the name can be found when something is sent is another matter.
  } finally {
    clearTimeout(timer);
  }
  return '';
}
