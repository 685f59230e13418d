/** Proposes a workflow for an HTML page: its repeated elements as records, their fields, and the link to the next page. */
import type { AnyNode, Document, Element } from 'domhandler';
import { compileSelector, readSelector, textOf } from '../../sources/http/paths.ts';
import {
  type Doubt,
  expectOf,
  Fields,
  keyOf,
  LOOKED_AT,
  MAX_FIELDS,
  type Proposal,
  textKind,
  wordOf,
} from './proposal.ts';

/** @throws Error if no elements repeat on the page */
export function proposeMarkup({ url, document }: { url: string; document: Document }): Proposal {
  const [best] = repeatedIn(document);
  if (best === undefined) {
    throw new Error(
      `No repeated elements on ${url} look like records. If a script loads them, find the URL that it requests in the network tools of your browser, and use that URL`,
    );
  }
  const doubts: Doubt[] = [];
  if (best.doubt !== undefined) doubts.push({ at: ['source', 'records'], text: best.doubt });
  const [html] = elementsBelow(document).filter(({ name }) => name === 'html');
  const candidates = best.headings === undefined ? candidatesIn(best.elements) : columnsOf(best.headings);
  const records = best.elements.slice(0, LOOKED_AT);
  const { settings: fields, columns } = chooseFields(candidates, records, html?.attribs.lang ?? '', doubts);
  const key = keyOf(columns, records.length, doubts);
  const next = nextLinkIn(document);
  if (next?.guess)
    doubts.push({
      at: ['source', 'paginate'],
      text: 'The link to the next page was found only by its text.',
    });
  return {
    source: {
      type: 'http',
      url,
      parse: 'html',
      records: best.selector,
      ...(next === undefined ? {} : { paginate: { type: 'next_link', from: next.path } }),
    },
    fields,
    key,
    expect: expectOf(columns, { records: records.length, key }),
    doubts,
  };
}

/** These elements are skipped, because they contain no data for readers. */
const UNREAD = new Set('script style svg template noscript button input select label option'.split(' '));

function isElement(node: AnyNode): node is Element {
  return node.type === 'tag';
}

function childElements(node: Element | Document): Element[] {
  return node.children.filter(isElement).filter(({ name }) => !UNREAD.has(name));
}

/** Yields all descendants in document order. The function is not recursive, because pages may nest deeply. */
function* elementsBelow(root: Element | Document): Generator<Element> {
  const open = childElements(root).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    yield next;
    const children = childElements(next);
    for (let at = children.length - 1; at >= 0; at--) open.push(children[at] as Element);
  }
}

/** Returns the text directly in an element, without the text of nested elements. */
function ownText(element: Element): string {
  return element.children
    .map((child) => (child.type === 'text' ? (child as unknown as { data: string }).data : ''))
    .join('')
    .trim();
}

/**
 * Returns the classes of an element that need no escaping in a selector. Classes for states, and names that a build
 * generates, are left out.
 */
function classesOf(element: Element): string[] {
  return (element.attribs.class ?? '')
    .split(/\s+/)
    .filter((name) => /^[A-Za-z_][\w-]*$/.test(name) && !/^(?:js-|is-|has-)|\d{4,}/.test(name));
}

/** Returns the class that says what an element is, rather than the state of the element. */
function mainClass(element: Element): string | undefined {
  const classes = classesOf(element);
  return classes.find((name) => !name.slice(1).includes('--')) ?? classes[0];
}

/**
 * Returns a selector such as `table.people` or `#main`. If the element has no id or class, the selector is the path
 * from its nearest ancestor with an id or class.
 */
function selectorOf(element: Element): string {
  const names: string[] = [];
  for (let at: Element | null = element; at !== null; at = parentOf(at)) {
    const { id } = at.attribs;
    if (id !== undefined && /^[A-Za-z][\w-]*$/.test(id)) return [`#${id}`, ...names].join(' > ');
    const name = mainClass(at);
    names.unshift(name === undefined ? at.name : `${at.name}.${name}`);
    if (name !== undefined || at.name === 'body' || names.length > 6) break;
  }
  return names.join(' > ');
}

function parentOf(element: Element): Element | null {
  const { parent } = element;
  return parent !== null && parent.type === 'tag' ? (parent as Element) : null;
}

/** Names that are too general for a field. A field with such a name is named after its block instead. */
const STATES = /^(?:now|current|value|text|amount|content|inner|body|link)$/;

/** A possible field, before its values are known. */
interface Candidate {
  name: string;
  path: string;
  replace?: [string, string];
}

/** Returns the possible fields in the first records, without duplicates. */
function candidatesIn(records: readonly Element[]): Candidate[] {
  const candidates = new Map<string, Candidate>();
  for (const candidate of records.slice(0, LOOKED_AT).flatMap(candidatesOfRecord)) {
    if (!candidates.has(candidate.path)) candidates.set(candidate.path, candidate);
  }
  return [...candidates.values()].slice(0, MAX_FIELDS * 4);
}

/** Returns the columns of a table as possible fields, named by their headings: first the texts, then the links. */
function columnsOf(headings: readonly string[]): Candidate[] {
  const names = headings.map((heading, at) => wordOf(heading) || `column_${at + 1}`);
  return [
    ...names.map((name, at) => ({ name, path: `td:nth-child(${at + 1})` })),
    // A link must be a direct child of its cell, because the table itself may be in a cell of another table.
    ...names.map((name, at) => ({ name: `${name}_url`, path: `td:nth-child(${at + 1}) > a@href` })),
  ];
}

/** Keeps candidates whose values differ between records, and differ from the values of other candidates. */
function chooseFields(
  candidates: readonly Candidate[],
  records: readonly Element[],
  language: string,
  doubts: Doubt[],
): Fields {
  const fields = new Fields();
  const seen = new Set<string>();
  for (const { name, path, replace } of candidates) {
    if (fields.isFull) break;
    const rows = valuesOf(path, records, replace);
    const texts = rows.filter((text) => text !== '');
    const alike = rows.join('\u0000');
    if (texts.length === 0 || seen.has(alike)) continue;
    seen.add(alike);
    const isConstant = texts.length === records.length && new Set(texts).size === 1 && records.length > 2;
    if (isConstant) continue;
    const dashes = texts.filter((text) => !/^[-–—]$/.test(text));
    const kind = /@(?:href|src)$/.test(path) ? undefined : textKind(dashes, language);
    const field = fields.add(name, texts, path, { ...(replace && { replace }), ...kind?.setting });
    if (kind?.doubt !== undefined) doubts.push({ at: ['fields', field], text: kind.doubt });
    if (texts.length < records.length)
      doubts.push({ at: ['fields', field], text: `Found in ${texts.length} of ${records.length} records.` });
  }
  return fields;
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

function candidatesOfRecord(record: Element): Candidate[] {
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

/**
 * Returns a name for the field in an element, and the element's path within its record, which starts at the nearest
 * class.
 */
function placeOf(element: Element, record: Element): { path: string; name: string } {
  const text = textOf(element, { trim: true });
  const below: string[] = [];
  for (let at: Element | null = element; at !== null && at !== record; at = parentOf(at)) {
    const own = mainClass(at);
    if (own === undefined) {
      below.unshift(at.name === 'td' ? `td:nth-child(${positionOf(at)})` : at.name);
      continue;
    }
    // If an element without a class contains all the text of an ancestor with a class, the path leads to the ancestor.
    const isAll = text !== '' && textOf(at, { trim: true }) === text && element.attribs.href === undefined;
    const rest = at === element || isAll ? '' : ` ${below.join(' > ')}`;
    return { path: `${at.name}.${own}${rest}`, name: wordByClass(own, record) || element.name };
  }
  const name = NAMES.find(([form]) => form.test(element.name))?.[1] ?? element.name;
  return { path: below.join(' > '), name: wordOf(element.attribs.itemprop ?? name) };
}

/** Field names for elements without a class, by element name. */
const NAMES: readonly [RegExp, string][] = [
  [/^h[1-6]$/, 'title'],
  [/^a$/, 'name'],
  [/^td$/, 'column'],
];

function positionOf(cell: Element): number {
  return (parentOf(cell)?.children ?? []).filter(isElement).indexOf(cell) + 1;
}

/**
 * Derives a field name from a class. In a `staff-card`, `staff-card__name` becomes `name`, `price__was` becomes
 * `price_was`, and `price__now` becomes `price`.
 */
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

const MAX_CANDIDATES = 2_000;
const SAMPLE = 20;
const BESIDE =
  /nav|menu|footer|header|aside|sidebar|pag(?:er|ination)|breadcrumb|cookie|recent|related|recommend|similar|social|promo|banner|filter|facet|tag/i;
const BESIDE_ELEMENTS = new Set(['nav', 'footer', 'header', 'aside', 'form', 'head']);

interface Repeated {
  selector: string;
  elements: Element[];
  score: number;
  /** The headings of a table's columns, in column order. */
  headings?: string[];
  doubt?: string;
}

/** @returns groups of repeated elements; the group that most likely contains the records comes first */
function repeatedIn(document: Document): Repeated[] {
  const groups = new Map<string, Element[]>();
  const tables: Element[] = [];
  for (const element of elementsBelow(document)) {
    if (element.name === 'table') tables.push(element);
    for (const selector of selectorsOf(element)) {
      const group = groups.get(selector);
      if (group !== undefined) group.push(element);
      else if (groups.size < MAX_CANDIDATES) groups.set(selector, [element]);
    }
  }
  const repeated = [...groups]
    .filter(([, elements]) => elements.length > 1 && !nests(elements))
    .map(([selector, elements]) => ({ selector, elements, score: scoreOf(elements) }));
  return [...repeated, ...tables.flatMap(rowsOf)]
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score);
}

function selectorsOf(element: Element): string[] {
  if (['tr', 'td', 'th', 'tbody', 'html', 'body', 'br', 'p'].includes(element.name)) return [];
  const classes = classesOf(element).filter((name) => !name.slice(1).includes('--'));
  if (classes.length > 0) return classes.map((name) => `${element.name}.${name}`);
  const parent = parentOf(element);
  return parent === null ? [] : [`${selectorOf(parent)} > ${element.name}`];
}

function nests(elements: readonly Element[]): boolean {
  const all = new Set(elements);
  return elements.slice(0, SAMPLE).some((element) => ancestorsOf(element).some((one) => all.has(one)));
}

function ancestorsOf(element: Element): Element[] {
  const above: Element[] = [];
  for (let at = parentOf(element); at !== null; at = parentOf(at)) above.push(at);
  return above;
}

/**
 * Returns the score of a group of elements. The score is high if many elements have many parts in common, and low in
 * navigation, footers and sidebars.
 */
function scoreOf(elements: readonly Element[]): number {
  const some = elements.slice(0, SAMPLE);
  const counts = new Map<string, number>();
  for (const element of some)
    for (const part of partsOf(element)) counts.set(part, (counts.get(part) ?? 0) + 1);
  const parts = [...counts.values()].filter((count) => count > some.length / 2).length;
  return Math.min(elements.length, 50) ** 0.6 * parts ** 1.5 * worthOfPlace(some[0] as Element);
}

/** Returns the parts of an element: its links, and its descendants with text of their own. */
function partsOf(root: Element): Set<string> {
  const parts = new Set<string>();
  for (const element of elementsBelow(root)) {
    const name = `${element.name}.${classesOf(element)[0] ?? ''}`;
    if (ownText(element) !== '') parts.add(name);
    if (element.attribs.href !== undefined) parts.add(`${name}@href`);
  }
  return parts;
}

function worthOfPlace(element: Element): number {
  let worth = 1;
  for (const { name, attribs } of [element, ...ancestorsOf(element)]) {
    if (BESIDE_ELEMENTS.has(name) || BESIDE.test(`${attribs.class ?? ''} ${attribs.id ?? ''}`)) worth *= 0.3;
    if (name === 'main' || name === 'article') worth *= 1.2;
    if (name === 'body') break;
  }
  return worth;
}

/**
 * Returns the rows of a data table. A table that contains another table or has fewer than two columns is used for
 * layout.
 */
function rowsOf(table: Element): Repeated[] {
  const inside = [...elementsBelow(table)];
  if (inside.some(({ name }) => name === 'table')) return [];
  const rows = inside
    .filter(({ name }) => name === 'tr')
    .map((row) => ({ row, place: parentOf(row)?.name, cells: childElements(row) }));
  const head = rows.find(({ cells }) => cells.length > 1 && cells.every(({ name }) => name === 'th'))?.cells;
  const body = rows.filter(
    ({ place, cells }) => place === 'tbody' && cells.some(({ name }) => name === 'td'),
  );
  const plain = body.filter(({ cells }) => cells.every(({ attribs }) => attribs.colspan === undefined));
  const columns = (head ?? plain[0]?.cells ?? []).length;
  if (plain.length === 0 || columns < 2) return [];
  const left = body.length - plain.length;
  const worth = worthOfPlace(table) * (head === undefined ? 0.7 : 2);
  return [
    {
      selector: `${selectorOf(table)} > tbody > tr:has(> td)${left > 0 ? ':not(:has(> [colspan]))' : ''}`,
      elements: plain.map(({ row }) => row),
      score: Math.min(plain.length, 50) ** 0.6 * columns ** 1.5 * worth,
      ...(head && { headings: head.map((cell) => textOf(cell, { trim: true })) }),
      ...(left > 0 && { doubt: `${left} rows with merged cells are left out.` }),
    },
  ];
}

const NEXT_CLASS = /(?:^|[-_])(?:next|forward|older)(?:$|[-_])/i;
const NEXT_TEXT =
  /^(?:next|next page|weiter|nächste(?: seite)?|vor|suivant|siguiente|older|more|[›»→])\s*[›»→]?$/iu;

/** @returns the path of the link to the next page, and whether it is a guess; undefined if there is no such link */
function nextLinkIn(document: Document): { path: string; guess: boolean } | undefined {
  const links = [...elementsBelow(document)].filter(
    ({ name, attribs }) =>
      (name === 'a' || name === 'link') && attribs.href !== undefined && !attribs.href.startsWith('#'),
  );
  const byRel = links.find(({ attribs }) => /(?:^|\s)next(?:\s|$)/i.test(attribs.rel ?? ''));
  if (byRel !== undefined) return { path: `${byRel.name}[rel~='next']@href`, guess: false };
  for (const link of links) {
    const own = nextClass(link);
    if (own !== undefined) return { path: `a.${own}@href`, guess: false };
    const parent = parentOf(link);
    const above = parent && nextClass(parent);
    if (above) return { path: `${parent.name}.${above} a@href`, guess: false };
  }
  for (const link of links) {
    const label = link.attribs['aria-label'];
    if (label !== undefined && /^next\b[\p{L}\p{N} ]*$/iu.test(label))
      return { path: `a[aria-label='${label}']@href`, guess: false };
    const text = textOf(link, { trim: true });
    if (NEXT_TEXT.test(text)) return { path: `a:contains('${text}')@href`, guess: true };
  }
  return undefined;
}

function nextClass(element: Element): string | undefined {
  return classesOf(element).find((name) => NEXT_CLASS.test(name));
}
