/** A workflow that is proposed for an address: its settings as they are written in YAML, and what is not certain about it. */
import { type Document, isMap, isScalar, parseDocument, stringify, type YAMLMap } from 'yaml';

/** A setting that is worth a second look, and why. */
export interface Doubt {
  /** Where it stands: `['source', 'paginate']`. Empty: of the whole. */
  at: string[];
  text: string;
}

export interface Proposal {
  source: Record<string, unknown>;
  /** Each a path, or a map with its path in `from`. */
  fields: Record<string, unknown>;
  key: string[];
  doubts: Doubt[];
}

/** The file of a workflow; what is not certain stands in comments above what it is about. */
export function proposalText({ source, fields, key, doubts }: Proposal): string {
  const settings = {
    source,
    ...(Object.keys(fields).length === 0 ? {} : { fields }),
    ...(key.length === 0 ? {} : { key }),
  };
  const document = parseDocument(stringify(settings, { lineWidth: 0 }));
  for (const { at, text } of doubts) comment(document, at, oneLine(text));
  return document.toString({ lineWidth: 0 });
}

function comment(document: Document, at: readonly string[], text: string): void {
  let map = document.contents as YAMLMap | null;
  for (const [depth, name] of at.entries()) {
    const pair = map?.items.find((one) => isScalar(one.key) && one.key.value === name);
    if (pair === undefined || !isScalar(pair.key)) break;
    if (depth === at.length - 1) {
      pair.key.commentBefore = added(pair.key.commentBefore, text);
      return;
    }
    map = isMap(pair.value) ? pair.value : null;
  }
  document.commentBefore = added(document.commentBefore, text);
}

function added(before: string | null | undefined, text: string): string {
  return before ? `${before}\n ${text}` : ` ${text}`;
}

/** What a page says must not end the comment that it stands in. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\s]+/gu, ' ').slice(0, 300);
}
