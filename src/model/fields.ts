/** The names of a version's fields: what the header of a CSV is made of. */

/** Names beyond these are not kept: a record may have thousands, and every version has a list. */
const MAX_FIELDS = 1_000;
const MAX_CHARACTERS = 65_536;

/** Both lists without duplicates, the names of `before` first. */
export function mergeFields(before: readonly string[], names: readonly string[]): string[] {
  const fields = new Set<string>();
  let characters = 0;
  for (const name of [...before, ...names]) {
    if (fields.has(name)) continue;
    characters += name.length;
    if (fields.size === MAX_FIELDS || characters > MAX_CHARACTERS) break;
    fields.add(name);
  }
  return [...fields];
}
