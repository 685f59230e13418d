/** Splits code into tokens for highlighting. The tokens of a text always add up to exactly that text. */

export type SourceLanguage = 'yaml' | 'typescript' | 'json';

interface SourceToken {
  kind: 'comment' | 'key' | 'string' | 'number' | 'literal' | 'plain';
  text: string;
  /** Offset in the text. */
  at: number;
}

const STRING = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?/.source;
const NUMBER = /(?<![\w.:/-])-?\d+(?:\.\d+)?(?![\w.-])/.source;

const WORDS: Record<SourceLanguage, RegExp> = {
  yaml: new RegExp(
    `(?<comment>(?<=^|\\s)#.*)|(?<key>(?<=^|[\\s{,\\[-])[\\w$.-]+(?=:(?:\\s|$)))|(?<string>${STRING})|(?<literal>\\b(?:true|false|null)\\b)|(?<number>${NUMBER})`,
    'g',
  ),
  typescript: new RegExp(
    `(?<comment>//.*|/\\*.*?(?:\\*/|$)|^\\s*\\*.*)|(?<string>${STRING}|\`(?:[^\`\\\\]|\\\\.)*\`?)|(?<literal>\\b(?:import|export|from|const|let|async|await|function|return|for|of|if|else|type|interface|yield|default|new|throw|true|false|null|undefined)\\b)|(?<number>${NUMBER})`,
    'g',
  ),
  json: /(?<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\]|\\.)*")|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(?<literal>true|false|null)\b/g,
};

/** All tokens in order. @param text all of a JSON text, but one line of the other languages */
export function tokensOf(text: string, language: SourceLanguage): SourceToken[] {
  const tokens: SourceToken[] = [];
  let end = 0;
  const add = (kind: SourceToken['kind'], part: string) => {
    if (part !== '') tokens.push({ kind, text: part, at: end });
    end += part.length;
  };
  for (const { 0: word, index, groups = {} } of text.matchAll(WORDS[language])) {
    add('plain', text.slice(end, index));
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    add((kind ?? 'plain') as SourceToken['kind'], word);
  }
  add('plain', text.slice(end));
  return tokens;
}

/**
 * JSON on indented lines, with every text and number as it was written; anything else is returned unchanged. Parsing would
 * round long numbers.
 */
export function indented(text: string): string {
  if (!isJson(text)) return text;
  let depth = 0;
  const line = (by: number) => {
    depth += by;
    return `\n${'  '.repeat(depth)}`;
  };
  return text.replaceAll(
    /"(?:[^"\\]|\\.)*"|([{[])\s*([}\]])?|([}\]])|[,:]|\s+/g,
    (part, open?: string, empty?: string, close?: string) => {
      if (open !== undefined) return empty === undefined ? open + line(1) : open + empty;
      if (close !== undefined) return line(-1) + close;
      if (part === ',') return part + line(0);
      if (part === ':') return ': ';
      return part.startsWith('"') ? part : '';
    },
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
