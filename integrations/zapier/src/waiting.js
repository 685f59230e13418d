/** How long a step waits by itself before it gives the time back to Zapier, which ends it after 30 s. */

const DEFAULT_S = 12;

/** `FLOWHOOK_WAIT_SECONDS` of the app's environment says it otherwise. @returns {number} milliseconds */
export function patienceMs() {
  const seconds = Number(process.env.FLOWHOOK_WAIT_SECONDS ?? DEFAULT_S);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 20) * 1_000 : DEFAULT_S * 1_000;
}
