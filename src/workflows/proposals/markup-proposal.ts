/** Proposes a workflow for an HTML page: its repeated elements as records, their fields, and the link to the next page. */
import type { Document, Element } from 'domhandler';
import { elementsBelow, parentOf } from './elements.ts';
import { fieldsOfColumns, fieldsOfElements } from './markup-fields.ts';
import { repeatedIn } from './markup-records.ts';
import { keyOf } from './names.ts';
import { nextLinkIn } from './next-link.ts';
import type { Doubt, Proposal } from './proposal.ts';

/** @throws Error when nothing repeats on the page */
export function proposeMarkup({ url, document }: { url: string; document: Document }): Proposal {
  const [best, ...others] = repeatedIn(document);
  if (best === undefined) {
    throw new Error(
      `Nothing repeats on ${url} that could be records. Perhaps a script puts it there: then look for the address that the script asks, in the network tools of a browser`,
    );
  }
  const doubts: Doubt[] = [];
  const records = ['source', 'records'];
  if (best.doubt !== undefined) doubts.push({ at: records, text: best.doubt });
  const second = others.find(
    ({ score, elements }) => score * 1.5 > best.score && !shareAPlace(elements, best.elements),
  );
  if (second !== undefined)
    doubts.push({
      at: records,
      text: `It may also be ${second.selector}, of which there are ${second.elements.length}.`,
    });
  const language = languageOf(document);
  const { fields, columns } =
    best.headings === undefined
      ? fieldsOfElements(best.elements, language, doubts)
      : fieldsOfColumns(best.elements, best.headings, language, doubts);
  const key = keyOf(columns, Math.min(best.elements.length, 100));
  if (key === undefined)
    doubts.push({ at: [], text: 'No field differs in all records: name the `key` that tells them apart.' });
  const next = nextLinkIn(document);
  if (next?.guess) doubts.push({ at: ['source', 'paginate'], text: 'Found by the words of the link.' });
  return {
    source: {
      type: 'http',
      url,
      parse: 'html',
      records: best.selector,
      ...(next === undefined ? {} : { paginate: { type: 'next_link', from: next.path } }),
    },
    fields,
    key: key === undefined ? [] : [key],
    doubts,
  };
}

/** Whether elements of one list are inside those of the other, so that both are parts of the same records. */
function shareAPlace(ones: readonly Element[], others: readonly Element[]): boolean {
  const isWithin = (inner: Element | undefined, outer: readonly Element[]) => {
    for (let at = inner ?? null; at !== null; at = parentOf(at)) if (outer.includes(at)) return true;
    return false;
  };
  return isWithin(ones[0], others.slice(0, 100)) || isWithin(others[0], ones.slice(0, 100));
}

function languageOf(document: Document): string {
  for (const { name, attribs } of elementsBelow(document)) if (name === 'html') return attribs.lang ?? '';
  return '';
}
