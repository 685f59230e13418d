/** Names for fields, out of headings, classes and properties. */

const SAYS_TOO_LITTLE =
  /^(?:_?id|name|title|value|type|count|label|code|key|text|url|href|self|status|date)$/i;
const MAX_NAME = 40;

/** A heading or a class as one word: `Fläche in km²` is `flaeche_in_km2`. */
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

/** The last of the names that lead to a property, with the one before it where it alone says too little. */
export function propertyName(steps: readonly string[]): string {
  const last = steps.at(-1) ?? 'value';
  const before = steps.at(-2);
  return before !== undefined && SAYS_TOO_LITTLE.test(last) ? `${before}_${last}` : last;
}

/** A name that is free: the name, else one with a number behind it. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${name}_${number}`;
  return free;
}

/** Names of what tells records apart, the best first. */
const KEYS: readonly RegExp[] = [
  /^_?id$/i,
  /^(?:uuid|guid|sku|isbn|ean|gtin|orcid|doi)$/i,
  /(?:_id|Id|ID|_key|Key|[nN]umber|_no|_code|Code|slug|handle)$/,
  /^(?:url|link|href|permalink|email|key|code)$/i,
];

/**
 * The field that tells records apart: the best name of those that are there in each record and differ in all; else
 * the first of them. Undefined when there is none.
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
