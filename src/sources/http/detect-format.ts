/** Detects the format of a response from its content type, its first characters and the file name in its URL. */
import type { Parse } from '../../model/http-source.ts';

const BY_TYPE: readonly [RegExp, Parse][] = [
  [/^application\/(?:x-)?(?:ndjson|jsonlines|jsonl|json-seq)$/, 'ndjson'],
  [/^(?:application|text)\/(?:[\w.+-]+\+)?json$/, 'json'],
  [
    /^text\/(?:csv|tab-separated-values|x-csv|comma-separated-values)$|^application\/(?:csv|vnd\.ms-excel)$/,
    'csv',
  ],
  [/^text\/html$|^application\/xhtml\+xml$/, 'html'],
  [/^(?:application|text)\/(?:[\w.+-]+\+)?xml$/, 'xml'],
];
const BY_NAME: readonly [RegExp, Parse][] = [
  [/\.(?:ndjson|jsonl)$/, 'ndjson'],
  [/\.(?:json|geojson)$/, 'json'],
  [/\.(?:csv|tsv|tab)$/, 'csv'],
  [/\.(?:xml|rss|atom)$/, 'xml'],
  [/\.x?html?$/, 'html'],
];

/** @param input.text the first characters of the body */
export function detectFormat(input: { text: string; contentType: string; url: string }): Parse | undefined {
  const type = input.contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  const said = BY_TYPE.find(([form]) => form.test(type))?.[1];
  const name = new URL(input.url).pathname.toLowerCase().replace(/\.(?:gz|zst|br)$/, '');
  const named = BY_NAME.find(([form]) => form.test(name))?.[1];
  const looks = looksLike(input.text);
  // The text wins over a content type that it contradicts: servers often send text/html by default.
  if (looks !== undefined && (said === undefined || !compatible(said, looks))) {
    return named !== undefined && compatible(named, looks) ? named : looks;
  }
  return said ?? named ?? (/^[^\n]*[,;\t|][^\n]*\r?\n/.test(input.text) ? 'csv' : undefined);
}

function looksLike(text: string): Parse | undefined {
  const start = text.replace(/^\ufeff/, '').trimStart();
  if (/^(?:<!doctype html|<html\b)/i.test(start)) return 'html';
  if (/^<\?xml\b/.test(start)) return 'xml';
  if (/^</.test(start)) return 'html';
  if (/^\{[^\n]*\}\r?\n\s*\{/.test(start)) return 'ndjson';
  return /^[[{]/.test(start) ? 'json' : undefined;
}

function compatible(said: Parse, looks: Parse): boolean {
  if (said === looks) return true;
  // A single object is JSON and NDJSON, XHTML begins like XML, and CSV fields may begin like anything but HTML.
  if (said === 'ndjson' || said === 'json')
    return looks === 'json' || (looks === 'ndjson' && said === 'ndjson');
  if (said === 'html' || said === 'xml') return looks === 'html' || looks === 'xml';
  return looks !== 'html';
}
