/** A proposed workflow: its settings, with doubts that become comments in its YAML file. */
import { type Document, isMap, isScalar, parseDocument, stringify, type YAMLMap } from 'yaml';

/** Why a setting deserves a second look. */
export interface Doubt {
  /** The path of the setting: `['source', 'paginate']`. Empty for the whole workflow. */
  at: string[];
  text: string;
}

export interface Proposal {
  source: Record<string, unknown>;
  /** Each value is a path, or a map with the path in `from`. */
  fields: Record<string, unknown>;
  key: string[];
  doubts: Doubt[];
}

/** The YAML file of a proposal, with its doubts as comments above the settings. */
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

/** Text of a page must not end the comment that quotes it. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\s]+/gu, ' ').slice(0, 300);
}
