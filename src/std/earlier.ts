/** Returns the earlier of two times; null or undefined means never. */
export function earlier(one: number | null | undefined, other: number | null | undefined): number | null {
  if (one == null || other == null) return one ?? other ?? null;
  return Math.min(one, other);
}
