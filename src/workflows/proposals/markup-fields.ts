/** Finds the fields of records on a page: what is in most of them, named by its class, its label or what it is. */
import type { Element } from 'domhandler';
import { compileSelector, readSelector, textOf } from '../sources/http/selector.ts';
import { classesOf, elementsBelow, mainClass, ownText, parentOf } from './elements.ts';
import { freeName, wordOf } from './names.ts';
import type { Doubt } from './proposal.ts';
import { textKind } from './value-kinds.ts';

const LOOKED_AT = 100;
const MAX_FIELDS = 40;
/** Names that say in which state something is: the block is what it is. */
const STATES = /^(?:now|current|value|text|amount|content|inner|body|link)$/;

/** Something that may be a field, before it is known what is in it. */
interface Finding {
  name: string;
  path: string;
  replace?: [string, string];
}

export interface FoundFields {
  fields: Record<string, unknown>;
  /** What each holds in the records that were looked at. */
  columns: Map<string, string[]>;
}

export function fieldsOfElements(
  records: readonly Element[],
  language: string,
  doubts: Doubt[],
): FoundFields {
  const some = records.slice(0, LOOKED_AT);
  const findings = new Map<string, Finding & { count: number }>();
  for (const record of some) {
    for (const finding of new Map(findingsIn(record).map((one) => [one.path, one])).values()) {
      const before = findings.get(finding.path);
      if (before === undefined) findings.set(finding.path, { ...finding, count: 1 });
      else before.count += 1;
    }
  }
  return settle([...findings.values()].slice(0, MAX_FIELDS * 4), some, language, doubts);
}

/** The columns of a table, named by their headings. */
export function fieldsOfColumns(
  records: readonly Element[],
  headings: readonly string[],
  language: string,
  doubts: Doubt[],
): FoundFields {
  const findings = headings.map((heading, at): Finding & { count: number } => ({
    name: wordOf(heading) || `column_${at + 1}`,
    path: `td:nth-child(${at + 1})`,
    count: records.length,
  }));
  const links = headings.map((heading, at): Finding & { count: number } => ({
    name: `${wordOf(heading) || `column_${at + 1}`}_url`,
    // Not any link below: what the table itself stands in may be such a cell as well.
    path: `td:nth-child(${at + 1}) > a@href`,
    count: records.length,
  }));
  return settle([...findings, ...links], records.slice(0, LOOKED_AT), language, doubts);
}

/** Keeps what tells something, once each. */
function settle(
  findings: readonly (Finding & { count: number })[],
  records: readonly Element[],
  language: string,
  doubts: Doubt[],
): FoundFields {
  const fields: Record<string, unknown> = {};
  const columns = new Map<string, string[]>();
  const seen = new Set<string>();
  const constant: string[] = [];
  for (const { name, path, replace } of findings) {
    if (columns.size >= MAX_FIELDS) break;
    const rows = valuesOf(path, records, replace);
    const texts = rows.filter((text) => text !== '');
    const alike = rows.join('\u0000');
    if (texts.length === 0 || seen.has(alike)) continue;
    seen.add(alike);
    if (texts.length === records.length && new Set(texts).size === 1 && records.length > 2) {
      constant.push(`${path} (${texts[0]})`);
      continue;
    }
    const free = freeName(name, new Set(columns.keys()));
    columns.set(free, texts);
    const dashes = texts.filter((text) => !/^[-–—]$/.test(text));
    const kind = path.endsWith('@href') || path.endsWith('@src') ? undefined : textKind(dashes, language);
    const extra = { ...(replace === undefined ? {} : { replace }), ...kind?.setting };
    Object.defineProperty(fields, free, {
      value: Object.keys(extra).length === 0 ? path : { from: path, ...extra },
      enumerable: true,
    });
    if (kind?.doubt !== undefined) doubts.push({ at: ['fields', free], text: kind.doubt });
    if (texts.length < records.length)
      doubts.push({ at: ['fields', free], text: `In ${texts.length} of ${records.length} records.` });
  }
  if (constant.length > 0)
    doubts.push({ at: ['fields'], text: `Left out, the same in all: ${constant.slice(0, 5).join(', ')}` });
  return { fields, columns };
}

function valuesOf(path: string, records: readonly Element[], replace: Finding['replace']): string[] {
  const { css, attribute } = readSelector(path);
  const find = css === null ? (record: Element) => [record] : compileSelector(css, { xml: false });
  const pattern = replace === undefined ? undefined : new RegExp(replace[0], 'gu');
  return records.map((record) => {
    const [found] = find(record);
    if (found === undefined) return '';
    const text = attribute === null ? textOf(found, { trim: true }) : (found.attribs[attribute] ?? '').trim();
    return pattern === undefined ? text : text.replace(pattern, replace?.[1] ?? '');
  });
}

function findingsIn(record: Element): Finding[] {
  const findings: Finding[] = [];
  for (const [attribute, value] of Object.entries(record.attribs)) {
    if (/^(?:id|data-[\w-]+)$/.test(attribute) && value !== '' && value.length < 200)
      findings.push({ name: wordOf(attribute.replace(/^data-/, '')), path: `@${attribute}` });
  }
  if (record.attribs.href !== undefined) findings.push({ name: 'url', path: '@href' });
  for (const element of elementsBelow(record)) findings.push(...findingsOf(element, record));
  return findings;
}

function findingsOf(element: Element, record: Element): Finding[] {
  const { href, datetime, src } = element.attribs;
  if (href?.startsWith('mailto:'))
    return [{ name: 'email', path: "a[href^='mailto:']@href", replace: ['^mailto:|\\?.*$', ''] }];
  if (href?.startsWith('tel:')) return [{ name: 'phone', path: "a[href^='tel:']" }];
  const { path, name } = placeOf(element, record);
  const findings: Finding[] = [];
  if (ownText(element) !== '' && /[\p{L}\p{N}]/u.test(ownText(element))) {
    if (datetime !== undefined)
      findings.push({ name: name === 'time' ? 'date' : name, path: `${path}@datetime` });
    else findings.push({ name, path });
  }
  if (href !== undefined && !/^(?:#|javascript:)/i.test(href))
    findings.push({ name: 'url', path: `${path}@href` });
  const lazy = Object.keys(element.attribs).find((one) => /^data-(?:lazy-?)?src$/.test(one));
  if (lazy !== undefined) findings.push({ name: 'image', path: `${path}@${lazy}` });
  else if (src !== undefined && !src.startsWith('data:'))
    findings.push({ name: 'image', path: `${path}@src` });
  return findings;
}

/** Where an element stands in its record, by the names that are nearest, and what it would be called. */
function placeOf(element: Element, record: Element): { path: string; name: string } {
  const text = textOf(element, { trim: true });
  const below: string[] = [];
  for (let at: Element | null = element; at !== null && at !== record; at = parentOf(at)) {
    const own = mainClass(at);
    if (own === undefined) {
      below.unshift(at.name === 'td' ? `td:nth-child(${positionOf(at)})` : at.name);
      continue;
    }
    const named = `${at.name}.${own}`;
    const name = wordByClass(own, record) || element.name;
    // A link without a name in something that has one, and nothing beside it, is that.
    if (
      at === element ||
      (textOf(at, { trim: true }) === text && text !== '' && element.attribs.href === undefined)
    )
      return { path: named, name };
    return { path: `${named} ${below.join(' > ')}`, name };
  }
  const name = NAMES.find(([form]) => form.test(element.name))?.[1] ?? element.name;
  return { path: below.join(' > '), name: wordOf(element.attribs.itemprop ?? name) };
}

/** What elements without a class are called. */
const NAMES: readonly [RegExp, string][] = [
  [/^h[1-6]$/, 'title'],
  [/^a$/, 'name'],
  [/^td$/, 'column'],
];

function positionOf(cell: Element): number {
  let position = 1;
  for (let at = cell.prev; at !== null; at = at.prev) if (at.type === 'tag') position += 1;
  return position;
}

/** `staff-card__name` in a `staff-card` is the name; `price__was` is the price_was, and `price__now` the price. */
function wordByClass(name: string, record: Element): string {
  const [block = '', element] = name.split(/__(?=[^_]*$)/);
  const blocks = classesOf(record);
  if (element !== undefined) {
    if (blocks.includes(block)) return wordOf(element);
    return STATES.test(element) ? wordOf(block) : wordOf(`${block}_${element}`);
  }
  const own = blocks.find((one) => name.startsWith(`${one}-`));
  return wordOf(own === undefined ? name : name.slice(own.length + 1));
}
