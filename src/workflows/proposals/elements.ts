/** Reads elements of a page: their children, text and classes, and selectors for them. */
import type { AnyNode, Document, Element } from 'domhandler';

/** Elements that hold no data for readers; they are skipped. */
const UNREAD = new Set([
  'script',
  'style',
  'svg',
  'template',
  'noscript',
  'button',
  'input',
  'select',
  'label',
  'option',
]);

function isElement(node: AnyNode): node is Element {
  return node.type === 'tag';
}

export function childElements(node: Element | Document): Element[] {
  return node.children.filter(isElement).filter(({ name }) => !UNREAD.has(name));
}

/** All descendants in document order. Not recursive, because pages may nest deeply. */
export function* elementsBelow(root: Element | Document): Generator<Element> {
  const open = childElements(root).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    yield next;
    const children = childElements(next);
    for (let at = children.length - 1; at >= 0; at--) open.push(children[at] as Element);
  }
}

/** The text directly in an element, without that of the elements in it. */
export function ownText(element: Element): string {
  return element.children
    .map((child) => (child.type === 'text' ? (child as unknown as { data: string }).data : ''))
    .join('')
    .trim();
}

/** The classes that a selector can name as they are, without those that are generated for each build of a site. */
export function classesOf(element: Element): string[] {
  return (element.attribs.class ?? '')
    .split(/\s+/)
    .filter((name) => /^[A-Za-z_][\w-]*$/.test(name) && !/^(?:js-|is-|has-)|\d{4,}/.test(name));
}

/** The class that names the thing rather than its state. */
export function mainClass(element: Element): string | undefined {
  const classes = classesOf(element);
  return classes.find((name) => !name.slice(1).includes('--')) ?? classes[0];
}

/** A selector such as `table.daten` or `#main`, or the path from the nearest ancestor that has one. */
export function selectorOf(element: Element): string {
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

export function parentOf(element: Element): Element | null {
  const { parent } = element;
  return parent !== null && parent.type === 'tag' ? (parent as Element) : null;
}
