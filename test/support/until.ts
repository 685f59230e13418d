/** Waits for what another process does: asks it again and again. */
import assert from 'node:assert/strict';

const EVERY_MS = 20;
/** Long enough for a machine that is busy with other things. */
const WITHIN_MS = 90_000;

/** Answers the first thing that is there; fails, with what was waited for, when nothing is for a long time. */
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
  return assert.fail(`Still waiting until ${what}`);
}
