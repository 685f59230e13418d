/** How long a step waits by itself: Zapier ends a step after 30 s. */

const DEFAULT_S = 12;

/** `FLOWHOOK_WAIT_SECONDS` in the app's environment overrides the default. @returns {number} milliseconds */
export function patienceMs() {
  const seconds = Number(process.env.FLOWHOOK_WAIT_SECONDS ?? DEFAULT_S);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 20) * 1_000 : DEFAULT_S * 1_000;
}
