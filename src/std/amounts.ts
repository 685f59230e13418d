/** Amounts and times in words, for people. */

/** `380 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`, `3 days 4 h`. */
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

/** `12,345`, of a whole number from 0 on. The first call of `toLocaleString` would take 45 ms. */
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

function two(first: number, unit: string, second: number, lesser: string): string {
  return second === 0 ? `${first} ${unit}` : `${first} ${unit} ${second} ${lesser}`;
}
