/** Chooses names for fields, and the field that is the key. */

const SAYS_TOO_LITTLE =
  /^(?:_?id|name|title|value|type|count|label|code|key|text|url|href|self|status|date)$/i;
const MAX_NAME = 40;

/** Turns a heading or a class into a name: `Fläche in km²` becomes `flaeche_in_km2`. */
export function wordOf(text: string): string {
  return text
    .replace(/[äöüÄÖÜß]/g, (letter) => GERMAN[letter.toLowerCase()] ?? letter)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, MAX_NAME);
}

const GERMAN: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' };

/** The last name of a path, preceded by the one before it if the last alone says too little. */
export function propertyName(steps: readonly string[]): string {
  const last = steps.at(-1) ?? 'value';
  const before = steps.at(-2);
  return before !== undefined && SAYS_TOO_LITTLE.test(last) ? `${before}_${last}` : last;
}

/** The name, with a number appended if it is taken. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${name}_${number}`;
  return free;
}

/** Names of fields that identify records, the best first. */
const KEYS: readonly RegExp[] = [
  /^_?id$/i,
  /^(?:uuid|guid|sku|isbn|ean|gtin|orcid|doi)$/i,
  /(?:_id|Id|ID|_key|Key|[nN]umber|_no|_code|Code|slug|handle)$/,
  /^(?:url|link|href|permalink|email|key|code)$/i,
];

/**
 * The field to use as the key. Of the fields that every record has with a different value, the one with the best name,
 * else the first.
 *
 * @param records how many records `columns` holds
 */
export function keyOf(columns: ReadonlyMap<string, readonly unknown[]>, records: number): string | undefined {
  const unique = [...columns].filter(
    ([, values]) =>
      values.length === records &&
      values.every((value) => typeof value === 'string' || typeof value === 'number') &&
      values.every((value) => value !== '') &&
      new Set(values).size === records,
  );
  for (const form of KEYS) {
    const found = unique.find(([name]) => form.test(name));
    if (found !== undefined) return found[0];
  }
  return unique[0]?.[0];
}
