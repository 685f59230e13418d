/** Keeps values that are expensive to make. */

/** Returns the value of a key, which is made only once while it is among the `most` values that were used last. */
export function remembered<Value>(
  values: Map<string, Value>,
  key: string,
  most: number,
  make: () => Value,
): Value {
  const value = values.get(key) ?? make();
  values.delete(key);
  values.set(key, value);
  const [oldest] = values.keys();
  if (values.size > most && oldest !== undefined) values.delete(oldest);
  return value;
}
