/**
 * How long, in bytes, a stored body may be that equals an incoming one, as SQL. A number may be stored with more digits
 * than it came with this time; what is longer than this is not read, and counts as different.
 *
 * @param size the length of the incoming body, as SQL
 */
export function longestEqual(size: string): string {
  return `4 * ${size} + 4096`;
}
