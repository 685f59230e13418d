/** Sizes in bytes, as definitions write them and as messages show them. */

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

/** `512MB`, `2 GB` or `1GiB` in bytes; undefined for anything else, including a bare number. */
export function parseSize(text: unknown): number | undefined {
  const match = typeof text === 'string' ? /^(\d{1,9}(?:\.\d{1,3})?) ?([KMGT]i?B)$/.exec(text) : null;
  if (match === null) return undefined;
  return Math.round(Number(match[1]) * UNIT_BYTES[match[2] as keyof typeof UNIT_BYTES]);
}

/** Bytes in the unit that gives a short number: `512 MB`, `1 GiB`, `612.3 MB`. */
export function formatSize(bytes: number): string {
  const exact = Object.entries(UNIT_BYTES)
    .reverse()
    .find(([, size]) => bytes >= size && bytes % size === 0 && bytes / size < 10_000);
  if (exact !== undefined) return `${bytes / exact[1]} ${exact[0]}`;
  const unit = (['TB', 'GB', 'MB', 'KB'] as const).find((name) => bytes >= UNIT_BYTES[name]);
  return unit === undefined ? `${bytes} bytes` : `${Number((bytes / UNIT_BYTES[unit]).toFixed(1))} ${unit}`;
}
