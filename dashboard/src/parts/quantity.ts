/** Numbers for people: grouped, and with their units. */

const GROUPED = new Intl.NumberFormat('en');
const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `1,234`. */
export function count(value: number): string {
  return GROUPED.format(value);
}

/** `1,234 records`, `1 record`, `2 deliveries`. */
export function many(
  value: number,
  noun: string,
  plural = `${noun.replace(/([^aeiou])y$/, '$1ie')}s`,
): string {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

/** `12.3 MB`, in powers of a thousand. */
export function bytes(value: number): string {
  const power = Math.min(SIZES.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  const size = value / 1_000 ** power;
  return `${power === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${SIZES[power]}`;
}

/** `840 ms`, `2.4 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return pair(minutes, 'min', Math.floor((ms % 60_000) / 1_000), 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return pair(hours, 'h', minutes % 60, 'min');
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function pair(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;
}
