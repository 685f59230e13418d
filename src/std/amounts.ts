/** Formats and parses amounts, sizes and durations: in words, and in the syntax of settings and definitions. */

/** A duration in words: `380 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`, `3 days 4 h`. */
export function durationWords(ms: number): string {
  if (Math.round(ms) < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return two(Math.floor(seconds / 60), 'min', seconds % 60, 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 24 * 60) return two(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  const hours = Math.round(minutes / 60);
  const days = Math.floor(hours / 24);
  return two(days, days === 1 ? 'day' : 'days', hours % 24, 'h');
}

/** `12,345 records`. */
export function countWords(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * A non-negative integer with commas: `12,345`. `toLocaleString` is not used, because its first call would take 45 ms.
 */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `812 B`, `3.4 kB`, `120 MB`. */
export function bytesWords(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  for (; Math.round(value) >= 1_000 && unit < units.length - 1; unit += 1) value /= 1_000;
  return `${value >= 100 ? Math.round(value) : Math.round(value * 10) / 10} ${units[unit]}`;
}

const SHOWN = 5;

/** The first items of a list, and the number of further items: `a, b, c, d, e and 12 more`. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}

function two(first: number, unit: string, second: number, lesser: string): string {
  return second === 0 ? `${first} ${unit}` : `${first} ${unit} ${second} ${lesser}`;
}

const UNIT_BYTES = {
  KB: 1_000,
  MB: 1_000_000,
  GB: 1_000_000_000,
  TB: 1_000_000_000_000,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
} as const;

/**
 * Parses a size such as `512MB`, `2 GB` or `1GiB` into bytes. Returns undefined for any other text, including a number
 * without a unit.
 */
export function parseSize(text: unknown): number | undefined {
  const match = typeof text === 'string' ? /^(\d{1,9}(?:\.\d{1,3})?) ?([KMGT]i?B)$/.exec(text) : null;
  if (match === null) return undefined;
  return Math.round(Number(match[1]) * UNIT_BYTES[match[2] as keyof typeof UNIT_BYTES]);
}

/** Formats a number of bytes with a suitable unit: `512 MB`, `1 GiB`, `612.3 MB`. */
export function formatSize(bytes: number): string {
  const exact = Object.entries(UNIT_BYTES)
    .reverse()
    .find(([, size]) => bytes >= size && bytes % size === 0 && bytes / size < 10_000);
  if (exact !== undefined) return `${bytes / exact[1]} ${exact[0]}`;
  const unit = (['TB', 'GB', 'MB', 'KB'] as const).find((name) => bytes >= UNIT_BYTES[name]);
  return unit === undefined ? `${bytes} bytes` : `${Number((bytes / UNIT_BYTES[unit]).toFixed(1))} ${unit}`;
}

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * Parses a duration such as `500ms`, `30s`, `15m`, `2h` or `7d` into milliseconds. Returns undefined for any other
 * text, including a number without a unit.
 */
export function parseDuration(text: unknown): number | undefined {
  const match = typeof text === 'string' ? /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) : null;
  if (match === null) return undefined;
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}
