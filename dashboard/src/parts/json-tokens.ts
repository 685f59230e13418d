/** The words of a JSON text, for colouring it. */

export interface JsonToken {
  kind: 'key' | 'string' | 'number' | 'literal' | 'plain';
  text: string;
  /** Where it begins. */
  at: number;
}

const WORDS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;

/** All of the text, in order. What is no JSON is plain where it is none. */
export function tokensOf(text: string): JsonToken[] {
  const tokens: JsonToken[] = [];
  let end = 0;
  const add = (kind: JsonToken['kind'], part: string) => {
    if (part !== '') tokens.push({ kind, text: part, at: end });
    end += part.length;
  };
  for (const match of text.matchAll(WORDS)) {
    const [, string, colon, number, literal] = match;
    add('plain', text.slice(end, match.index));
    if (string !== undefined) {
      add(colon === undefined ? 'string' : 'key', string);
      add('plain', colon ?? '');
    } else if (number !== undefined) add('number', number);
    else add('literal', literal ?? '');
  }
  add('plain', text.slice(end));
  return tokens;
}
