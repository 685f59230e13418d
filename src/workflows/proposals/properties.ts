/** Properties of an answer in JSON, and paths to them. */

/** @param steps names of properties */
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
 * The properties that paths may lead to. A name with a place in it would be filled in when the workflow runs: an
 * answer could ask for a secret that way.
 */
export function propertiesOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([name]) => name.length <= 200 && !/[$#{]\{/.test(name));
}
