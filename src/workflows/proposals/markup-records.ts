/** Finds repeated elements of a page that look like records, and selectors for them. */
import type { Document, Element } from 'domhandler';
import { textOf } from '../../sources/http/paths.ts';
import { childElements, classesOf, elementsBelow, ownText, parentOf, selectorOf } from './elements.ts';

const MAX_CANDIDATES = 2_000;
const LOOKED_AT = 20;
const BESIDE =
  /nav|menu|footer|header|aside|sidebar|pag(?:er|ination)|breadcrumb|cookie|recent|related|recommend|similar|social|promo|banner|filter|facet|tag/i;
const BESIDE_ELEMENTS = new Set(['nav', 'footer', 'header', 'aside', 'form', 'head']);

interface Repeated {
  selector: string;
  elements: Element[];
  score: number;
  /** The column headings of a table, by position; undefined without headings. */
  headings: string[] | undefined;
  doubt: string | undefined;
}

/** @returns groups of elements, the most likely records first */
export function repeatedIn(document: Document): Repeated[] {
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
    .map(([selector, elements]) => ({
      selector,
      elements,
      score: scoreOf(elements),
      headings: undefined,
      doubt: undefined,
    }));
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
  return elements.slice(0, LOOKED_AT).some((element) => {
    for (let at = parentOf(element); at !== null; at = parentOf(at)) if (all.has(at)) return true;
    return false;
  });
}

/** High for many elements with many parts in common; low in navigation, footers and sidebars. */
function scoreOf(elements: readonly Element[]): number {
  const some = elements.slice(0, LOOKED_AT);
  const counts = new Map<string, number>();
  for (const element of some)
    for (const part of partsOf(element)) counts.set(part, (counts.get(part) ?? 0) + 1);
  const parts = [...counts.values()].filter((count) => count > some.length / 2).length;
  return Math.min(elements.length, 50) ** 0.6 * parts ** 1.5 * placeOf(some[0] as Element);
}

/** The parts of an element: descendants with their own text, and links. */
function partsOf(root: Element): Set<string> {
  const parts = new Set<string>();
  for (const element of elementsBelow(root)) {
    const name = `${element.name}.${classesOf(element)[0] ?? ''}`;
    if (ownText(element) !== '') parts.add(name);
    if (element.attribs.href !== undefined) parts.add(`${name}@href`);
  }
  return parts;
}

function placeOf(element: Element): number {
  let worth = 1;
  for (let at: Element | null = element; at !== null; at = parentOf(at)) {
    if (BESIDE_ELEMENTS.has(at.name) || BESIDE.test(`${at.attribs.class ?? ''} ${at.attribs.id ?? ''}`))
      worth *= 0.3;
    if (at.name === 'main' || at.name === 'article') worth *= 1.2;
    if (at.name === 'body') break;
  }
  return worth;
}

/** The rows of a data table. Layout tables have tables in them, or fewer than two columns. */
function rowsOf(table: Element): Repeated[] {
  const rows = [...elementsBelow(table)].filter(({ name }) => name === 'tr');
  if ([...elementsBelow(table)].some(({ name }) => name === 'table')) return [];
  const head = rows.find((row) => {
    const cells = childElements(row);
    return cells.length > 1 && cells.every(({ name }) => name === 'th');
  });
  const body = rows.filter(
    (row) => parentOf(row)?.name === 'tbody' && childElements(row).some(({ name }) => name === 'td'),
  );
  const plain = body.filter((row) =>
    childElements(row).every(({ attribs }) => attribs.colspan === undefined),
  );
  const columns = head === undefined ? childElements(plain[0] ?? table).length : childElements(head).length;
  if (plain.length === 0 || columns < 2) return [];
  const hasSpans = plain.length < body.length;
  const headings =
    head === undefined ? undefined : childElements(head).map((cell) => textOf(cell, { trim: true }));
  return [
    {
      selector: `${selectorOf(table)} > tbody > tr:has(> td)${hasSpans ? ':not(:has(> [colspan]))' : ''}`,
      elements: plain,
      score:
        Math.min(plain.length, 50) ** 0.6 * columns ** 1.5 * placeOf(table) * (head === undefined ? 0.7 : 2),
      headings,
      doubt: hasSpans
        ? `${body.length - plain.length} rows with cells across several columns are left out.`
        : undefined,
    },
  ];
}
