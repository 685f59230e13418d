/** What a sentence of the service holds: words, code between backticks, and times in ISO 8601. */

export interface SentencePart {
  kind: 'words' | 'code' | 'time';
  text: string;
}

const PARTS = /`([^`\n]+)`|\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/g;

/** The parts of a text, in order. A backtick without another one is a character like any other. */
export function sentenceParts(text: string): SentencePart[] {
  const parts: SentencePart[] = [];
  let from = 0;
  const add = (part: SentencePart) => part.text !== '' && parts.push(part);
  for (const { 0: whole, 1: code, 2: time, index } of text.matchAll(PARTS)) {
    add({ kind: 'words', text: text.slice(from, index) });
    if (code !== undefined) add({ kind: 'code', text: code });
    else add({ kind: 'time', text: time ?? whole });
    from = index + whole.length;
  }
  add({ kind: 'words', text: text.slice(from) });
  return parts;
}

/** For the middle of another sentence. */
export function uncapitalized(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

/** The same without marks, for titles and what is announced. */
export function plainSentence(text: string, wordsOf: (time: string) => string): string {
  return sentenceParts(text)
    .map((part) => (part.kind === 'time' ? wordsOf(part.text) : part.text))
    .join('');
}
