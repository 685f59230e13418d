/** A definition that is typed as JSON. */

/** A mistake comes with its line, where the browser tells the position. */
export function parsedDefinition(
  text: string,
): { definition: Record<string, unknown> } | { mistake: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return {
      mistake: `This is not JSON: ${(error as Error).message}${placeOf(text, (error as Error).message)}`,
    };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { mistake: 'A definition is an object, such as { "source": { "type": "push" } }' };
  }
  return { definition: value as Record<string, unknown> };
}

function placeOf(text: string, message: string): string {
  if (/line \d+/.test(message)) return '';
  const [, position] = /position (\d+)/.exec(message) ?? [];
  return position === undefined ? '' : ` (line ${text.slice(0, Number(position)).split('\n').length})`;
}
