/** Properties of JSON values, and paths to them. */

/** @param steps property names */
export function pathOf(steps: readonly string[]): string {
  return steps.reduce(
    (path, step) =>
      /^[A-Za-z_]\w*$/.test(step)
        ? `${path}.${step}`
        : `${path}[${step.includes("'") ? JSON.stringify(step) : `'${step}'`}]`,
    '$',
  );
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The properties that paths may name. Names that look like placeholders are left out: they would be filled in when the
 * workflow runs, so a response could ask for a secret that way.
 */
export function propertiesOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([name]) => name.length <= 200 && !/[$#{]\{/.test(name));
}
