/** The names of a version's fields, which become the header of its CSV. */

/** At most so many names, and so many characters in them, are kept: every version has a list. */
const MAX_FIELDS = 1_000;
const MAX_CHARACTERS = 65_536;

/** Both lists without duplicates, the names of `before` first; cut at the bounds. */
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
