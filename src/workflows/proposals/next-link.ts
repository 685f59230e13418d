/** Finds the link to the next page of an HTML list, and a selector for it that works on all of its pages. */
import type { Document, Element } from 'domhandler';
import { textOf } from '../../sources/http/paths.ts';
import { classesOf, elementsBelow, parentOf } from './elements.ts';

const NEXT_CLASS = /(?:^|[-_])(?:next|forward|older)(?:$|[-_])/i;
const NEXT_TEXT =
  /^(?:next|next page|weiter|nächste(?: seite)?|vor|suivant|siguiente|older|more|[›»→])\s*[›»→]?$/iu;

/** @returns the path of its URL, and whether it is a guess; undefined when there is no such link */
export function nextLinkIn(document: Document): { path: string; guess: boolean } | undefined {
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
    const above = parent === null ? undefined : nextClass(parent);
    if (parent !== null && above !== undefined)
      return { path: `${parent.name}.${above} a@href`, guess: false };
  }
  for (const link of links) {
    const label = link.attribs['aria-label'] ?? link.attribs.title;
    if (label !== undefined && /^next\b[\p{L}\p{N} ]*$/iu.test(label)) {
      const attribute = link.attribs['aria-label'] === undefined ? 'title' : 'aria-label';
      return { path: `a[${attribute}='${label}']@href`, guess: false };
    }
    const text = textOf(link, { trim: true });
    if (NEXT_TEXT.test(text)) return { path: `a:contains('${text}')@href`, guess: true };
  }
  return undefined;
}

function nextClass(element: Element): string | undefined {
  return classesOf(element).find((name) => NEXT_CLASS.test(name));
}
