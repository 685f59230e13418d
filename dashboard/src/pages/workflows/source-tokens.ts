/** The words of a workflow file, for colouring it: enough to read by, and never wrong about the text itself. */

export type SourceLanguage = 'yaml' | 'typescript' | 'json';

export interface SourceToken {
  kind: 'comment' | 'key' | 'string' | 'number' | 'literal' | 'plain';
  text: string;
  /** Where it begins in its line. */
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
  json: new RegExp(
    `(?<key>"(?:[^"\\\\]|\\\\.)*"(?=\\s*:))|(?<string>${STRING})|(?<literal>\\b(?:true|false|null)\\b)|(?<number>${NUMBER})`,
    'g',
  ),
};

/** Of each line, all of it, in order. A text that goes on over lines is coloured in its first one only. */
export function sourceTokens(lines: readonly string[], language: SourceLanguage): SourceToken[][] {
  return lines.map((line) => tokensOf(line, WORDS[language]));
}

function tokensOf(line: string, words: RegExp): SourceToken[] {
  const tokens: SourceToken[] = [];
  let end = 0;
  const add = (kind: SourceToken['kind'], text: string) => {
    if (text !== '') tokens.push({ kind, text, at: end });
    end += text.length;
  };
  for (const { 0: text, index, groups = {} } of line.matchAll(words)) {
    add('plain', line.slice(end, index));
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    add((kind ?? 'plain') as SourceToken['kind'], text);
  }
  add('plain', line.slice(end));
  return tokens;
}
