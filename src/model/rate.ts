/** Rates: a count within a time, as people write it in settings. */

export interface Rate {
  count: number;
  /** Whole seconds. */
  windowMs: number;
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
const MOST = 1_000_000;
const LONGEST_MS = 24 * UNIT_MS.h;

/** Reads `600/1m` (600 within a minute) or `10/s` (ten within a second); undefined for anything else. */
export function parseRate(text: string): Rate | undefined {
  const match = /^(\d{1,7})\/(\d{0,5})(s|m|h)$/.exec(text);
  if (match === null) return undefined;
  const [, written = '', times = '', unit = 's'] = match;
  const count = Number(written);
  const windowMs = Number(times || 1) * UNIT_MS[unit as keyof typeof UNIT_MS];
  const isWithin = count >= 1 && count <= MOST && windowMs >= UNIT_MS.s && windowMs <= LONGEST_MS;
  return isWithin ? { count, windowMs } : undefined;
}
