/** What the indexes of records hold of an id: an index row may have some 2,700 bytes, and an id 1,024 characters. */

/**
 * The SQL expression for an id, as the indexes of `record` have it: a short id itself, of a long one its beginning and
 * a digest. No long id has the key of a short one. Different ids have different keys but for somebody who looks for
 * collisions of MD5, so that whoever looks one up compares the id as well.
 */
export function idKey(id: string): string {
  return `(case when octet_length(${id}) <= 256 then ${id} else left(${id}, 256) || md5(${id}) end)`;
}
