/** Waits for a condition, for example in another process, by checking it repeatedly. */
import assert from 'node:assert/strict';

const EVERY_MS = 20;
/** Long enough for a machine that is busy with other things. */
const WITHIN_MS = 90_000;

/** Returns the first truthy result of `look`. Fails after 90 s with `what`, which describes the condition. */
export async function until<Found>(
  what: string,
  look: () => Found | undefined | false | Promise<Found | undefined | false>,
): Promise<Found> {
  const deadline = performance.now() + WITHIN_MS;
  while (performance.now() < deadline) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
  return assert.fail(`Timed out after ${WITHIN_MS / 1_000} s: ${what}`);
}
