/** Durations as definitions write them. */

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `500ms`, `30s`, `15m`, `2h` or `7d` in milliseconds; undefined for anything else, including a bare number. */
export function parseDuration(text: unknown): number | undefined {
  const match = typeof text === 'string' ? /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) : null;
  if (match === null) return undefined;
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}
