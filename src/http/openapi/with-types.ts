/**
 * Says beside every `enum` and `const` of a description which type its values have. JSON Schema does not ask for it, but
 * generators of clients that see none make such a field anything (`interface{}` in Go).
 */
export function withTypes<Described>(described: Described): Described {
  return typed(described) as Described;
}

/** What holds values and no schemas. */
const VALUES = ['enum', 'const', 'default', 'example', 'examples'];

function typed(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(typed);
  if (typeof part !== 'object' || part === null) return part;
  const parts = Object.fromEntries(
    Object.entries(part).map(([name, one]) => [name, VALUES.includes(name) ? one : typed(one)]),
  );
  if ('type' in parts) return parts;
  if (Array.isArray(parts.enum)) return { type: typeOf(parts.enum), ...parts };
  return 'const' in parts ? { type: typeOf([parts.const]), ...parts } : parts;
}

/** One, or a list where some of the values are null. */
function typeOf(values: readonly unknown[]): string | string[] {
  const types = [...new Set(values.map((value) => (value === null ? 'null' : typeof value)))];
  const [only] = types;
  return types.length === 1 && only !== undefined ? only : types;
}
