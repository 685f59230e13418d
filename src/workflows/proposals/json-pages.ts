/** Detects the pagination of a JSON API: a Link header, a URL in the body, a cursor, an offset or a page number. */
import { linkTo } from '../../net/response-headers.ts';
import type { JsonResponse } from './json-proposal.ts';
import { isMap, pathOf, propertiesOf } from './properties.ts';
import type { Doubt } from './proposal.ts';

const NEXT_ADDRESS = /^(?:@odata\.)?next(?:_?(?:url|uri|link|href|page|page_?url))?$/i;
const CURSOR = /cursor|(?:page|next|continuation).?token|^(?:after|next|scroll_?id|marker|next_?page)$/i;
const BACK = /prev|before|start_?cursor|first|self|last/i;
const MAX_DEPTH = 4;

interface Leaf {
  steps: string[];
  name: string;
  value: unknown;
}

/** @returns the setting `paginate`; undefined when there seem to be no more pages */
export function jsonPages(
  response: JsonResponse & { records: { steps: readonly string[]; count: number } },
  doubts: Doubt[],
): object | undefined {
  const { url, records } = response;
  const at = ['source', 'paginate'];
  if (linkTo('next', response.linkHeader) !== undefined) return { type: 'link_header' };
  const leaves = leavesAround(response.value, records.steps);
  const find = (form: RegExp) =>
    leaves.find(({ name, value }) => form.test(name) && typeof value === 'number');
  const next = leaves.find(
    ({ steps, value }) =>
      typeof value === 'string' &&
      /^(?:https?:\/\/|[/?])/.test(value) &&
      steps.some((step) => NEXT_ADDRESS.test(step)),
  );
  if (next !== undefined) return { type: 'next_link', from: pathOf(next.steps) };

  const cursor = leaves.find(
    ({ name, steps, value }) =>
      (typeof value === 'string' || typeof value === 'number') &&
      value !== '' &&
      (typeof value === 'string' || !/page/i.test(name)) &&
      CURSOR.test(name) &&
      !steps.some((step) => BACK.test(step)),
  );
  if (cursor !== undefined) {
    const param = paramOf(cursor);
    doubts.push({
      at,
      text: `The answer names the cursor ${pathOf(cursor.steps)}; that the parameter for it is called ${param} is a guess.`,
    });
    return { type: 'cursor', from: pathOf(cursor.steps), param };
  }

  const total = find(
    /^(?:total|total_?(?:count|results|records|items|hits|elements)|count|found|num_?found)$/i,
  );
  const seen = records.count;
  const isMore = total === undefined ? undefined : (total.value as number) > seen;
  const query = new URL(url).searchParams;
  const limit = find(/^(?:limit|page_?size|per_?page|size|rows|max_?results)$/i);
  const limitParam = [...query.keys()].find((name) =>
    /^(?:limit|page_?size|per_?page|size|rows|count)$/i.test(name),
  );
  const size =
    Number((limitParam === undefined ? undefined : query.get(limitParam)) ?? limit?.value ?? seen) || seen;
  const offset = find(/^(?:offset|skip|start|start_?index|from)$/i);
  if (offset !== undefined && isMore !== false) {
    const param = [...query.keys()].find((name) => /^(?:offset|skip|start|from)$/i.test(name)) ?? offset.name;
    if (total === undefined) doubts.push({ at, text: 'The answer does not say how many there are.' });
    return { type: 'offset', param, limit: size, ...named(limitParam ?? limit?.name) };
  }
  const page = find(/^(?:page|page_?(?:no|number|index)|current_?page)$/i);
  const pages = find(/^(?:total_?pages|pages|page_?count|last_?page|num_?pages)$/i);
  const morePages = pages === undefined ? isMore : (pages.value as number) > 1;
  if (page !== undefined && morePages !== false) {
    const param = [...query.keys()].find((name) => /page/i.test(name) && name !== limitParam) ?? 'page';
    doubts.push({ at, text: `That the parameter is called ${param} is a guess.` });
    return { type: 'page', param, ...(page.value === 0 ? { start: 0 } : {}) };
  }
  if (isMore === true)
    doubts.push({
      at: ['source'],
      text: `The answer says ${pathOf((total as Leaf).steps)}: ${total?.value}, and holds ${seen}; how to ask for the rest was not found. See \`paginate\`.`,
    });
  return undefined;
}

function named(limitParam: string | undefined): object {
  return limitParam === undefined || limitParam === 'limit' ? {} : { limitParam };
}

/** The likely parameter: `cursor` for `next_cursor`, `pageToken` for `nextPageToken`, and `cursor` for a bare `next`. */
function paramOf({ name }: Leaf): string {
  const rest = name.replace(/^(?:next|end)_?(?=.)/i, '');
  return /^next$/i.test(rest) ? 'cursor' : `${rest.charAt(0).toLowerCase()}${rest.slice(1)}`;
}

/** All values outside of the records. */
function leavesAround(value: unknown, records: readonly string[]): Leaf[] {
  const leaves: Leaf[] = [];
  const open: { value: unknown; steps: string[] }[] = [{ value, steps: [] }];
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const { steps } = next;
    if (steps.length === records.length && records.every((step, index) => steps[index] === step)) continue;
    if (isMap(next.value) && steps.length < MAX_DEPTH) {
      for (const [name, inner] of propertiesOf(next.value))
        open.push({ value: inner, steps: [...steps, name] });
    } else if (steps.length > 0) leaves.push({ steps, name: steps.at(-1) as string, value: next.value });
  }
  return leaves;
}
