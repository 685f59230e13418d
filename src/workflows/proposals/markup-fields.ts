/** Finds the fields of records on a page, named after classes, column headings or elements. */
import type { Element } from 'domhandler';
import { compileSelector, readSelector, textOf } from '../../sources/http/paths.ts';
import { classesOf, elementsBelow, mainClass, ownText, parentOf } from './elements.ts';
import { freeName, wordOf } from './names.ts';
import type { Doubt } from './proposal.ts';
import { textKind } from './value-kinds.ts';

const LOOKED_AT = 100;
const MAX_FIELDS = 40;
/** Names of states rather than things: the field is then named after the block that the element is in. */
const STATES = /^(?:now|current|value|text|amount|content|inner|body|link)$/;

/** A possible field, before its values are known. */
interface Candidate {
  name: string;
  path: string;
  replace?: [string, string];
}

interface FoundFields {
  fields: Record<string, unknown>;
  /** The values of each field in the records that were looked at, without empty ones. */
  columns: Map<string, string[]>;
}

export function fieldsOfElements(
  records: readonly Element[],
  language: string,
  doubts: Doubt[],
): FoundFields {
  const some = records.slice(0, LOOKED_AT);
  const candidates = new Map<string, Candidate & { count: number }>();
  for (const record of some) {
    for (const candidate of new Map(candidatesIn(record).map((one) => [one.path, one])).values()) {
      const before = candidates.get(candidate.path);
      if (before === undefined) candidates.set(candidate.path, { ...candidate, count: 1 });
      else before.count += 1;
    }
  }
  return chooseFields([...candidates.values()].slice(0, MAX_FIELDS * 4), some, language, doubts);
}

/** The columns of a table, named by their headings. */
export function fieldsOfColumns(
  records: readonly Element[],
  headings: readonly string[],
  language: string,
  doubts: Doubt[],
): FoundFields {
  const candidates = headings.map((heading, at): Candidate & { count: number } => ({
    name: wordOf(heading) || `column_${at + 1}`,
    path: `td:nth-child(${at + 1})`,
    count: records.length,
  }));
  const links = headings.map((heading, at): Candidate & { count: number } => ({
    name: `${wordOf(heading) || `column_${at + 1}`}_url`,
    // Only direct children: the table itself may be inside a cell of another table.
    path: `td:nth-child(${at + 1}) > a@href`,
    count: records.length,
  }));
  return chooseFields([...candidates, ...links], records.slice(0, LOOKED_AT), language, doubts);
}

/** Keeps candidates that have values which differ between records and repeat no other candidate. */
function chooseFields(
  candidates: readonly (Candidate & { count: number })[],
  records: readonly Element[],
  language: string,
  doubts: Doubt[],
): FoundFields {
  const fields: Record<string, unknown> = {};
  const columns = new Map<string, string[]>();
  const seen = new Set<string>();
  const constant: string[] = [];
  for (const { name, path, replace } of candidates) {
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

function valuesOf(path: string, records: readonly Element[], replace: Candidate['replace']): string[] {
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

function candidatesIn(record: Element): Candidate[] {
  const candidates: Candidate[] = [];
  for (const [attribute, value] of Object.entries(record.attribs)) {
    if (/^(?:id|data-[\w-]+)$/.test(attribute) && value !== '' && value.length < 200)
      candidates.push({ name: wordOf(attribute.replace(/^data-/, '')), path: `@${attribute}` });
  }
  if (record.attribs.href !== undefined) candidates.push({ name: 'url', path: '@href' });
  for (const element of elementsBelow(record)) candidates.push(...candidatesOf(element, record));
  return candidates;
}

function candidatesOf(element: Element, record: Element): Candidate[] {
  const { href, datetime, src } = element.attribs;
  if (href?.startsWith('mailto:'))
    return [{ name: 'email', path: "a[href^='mailto:']@href", replace: ['^mailto:|\\?.*$', ''] }];
  if (href?.startsWith('tel:')) return [{ name: 'phone', path: "a[href^='tel:']" }];
  const { path, name } = placeOf(element, record);
  const candidates: Candidate[] = [];
  if (ownText(element) !== '' && /[\p{L}\p{N}]/u.test(ownText(element))) {
    if (datetime !== undefined)
      candidates.push({ name: name === 'time' ? 'date' : name, path: `${path}@datetime` });
    else candidates.push({ name, path });
  }
  if (href !== undefined && !/^(?:#|javascript:)/i.test(href))
    candidates.push({ name: 'url', path: `${path}@href` });
  const lazy = Object.keys(element.attribs).find((one) => /^data-(?:lazy-?)?src$/.test(one));
  if (lazy !== undefined) candidates.push({ name: 'image', path: `${path}@${lazy}` });
  else if (src !== undefined && !src.startsWith('data:'))
    candidates.push({ name: 'image', path: `${path}@src` });
  return candidates;
}

/** The path of an element within its record, from the nearest class, and the name of its field. */
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
    // An element without a class that is all the text of its parent is represented by the parent.
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

/** Field names for elements without a class. */
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

/** In a `staff-card`, `staff-card__name` becomes `name`, `price__was` becomes `price_was`, and `price__now` becomes `price`. */
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
