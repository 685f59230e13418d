/**
 * Which index of `record` a statement uses is said by the statement. Left to itself the planner takes any that begins
 * with team and workflow as soon as it believes that there are few such rows, which of a new workflow it always does
 * (measured: 2,000 instead of 40,000 records/s, and worse with every batch). So each index has its name before the
 * workflow in its key; only the primary key has the plain column.
 */

type Index = 'current' | 'closed' | 'added' | 'removed';

/** The condition that a row, by its alias or by none, is of a workflow; `value` is an SQL expression. */
export function ofWorkflow(index: Index, value: string, alias = 'record'): string {
  return `'${index}' || ${alias}.workflow_id = '${index}' || ${value}::text`;
}

/** The condition that a row has an id, for `current` and `closed`; `value` is an SQL expression. */
export function hasId(value: string, alias = 'record'): string {
  return `${idKey(`${alias}.id`)} = ${idKey(value)} and ${alias}.id = ${value}`;
}

/**
 * An id as the indexes have it: a short one itself, of a long one its beginning and a digest, because an index row may
 * have some 2,700 bytes, and an id 1,024 characters. No long id has the key of a short one.
 */
function idKey(id: string): string {
  return `case when octet_length(${id}) <= 256 then ${id} else left(${id}, 256) || md5(${id}) end`;
}
