/** Lists names within a sentence, the first few of them. */

const SHOWN = 5;

/** `a, b, c, d, e and 12 more`. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}
