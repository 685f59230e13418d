/** Proposes a workflow for a JSON response: the list that looks most like records, its properties as fields, its pages. */
import { linkTo } from '../../net/response-headers.ts';
import {
  type Doubt,
  expectOf,
  Fields,
  isMoment,
  keyOf,
  LOOKED_AT,
  MAX_FIELDS,
  type Proposal,
  propertyName,
  textKind,
} from './proposal.ts';

const MAX_DEPTH = 6;
const MAX_LISTS = 1_000;
const FIELD_DEPTH = 4;
/** Names of lists that probably contain the records, and names of lists that probably do not. */
const RECORDS =
  /^(?:data|items|results?|records|rows|list|entries|docs|documents|objects|content|hits|value|elements|edges|nodes)$/i;
const BESIDE =
  /^(?:facets?|aggregations?|buckets|included|links|errors|warnings|messages|meta|filters|scopes|tags)$/i;
/** Names of objects that often wrap a record. */
const WRAPPER = /^(?:node|item|attributes|properties|fields|resource|record|document|_source|data)$/;

interface JsonResponse {
  url: string;
  /** The parsed body. */
  value: unknown;
  linkHeader: string | undefined;
}

type Properties = Record<string, unknown>;

/** A value with the names of the properties that lead to it. */
interface Leaf {
  steps: string[];
  value: unknown;
}

interface List {
  steps: string[];
  elements: Properties[];
  score: number;
}

/** Yields the values within nested objects, down to a maximum depth. */
function* leavesOf(value: unknown, depth: number, steps: string[] = []): Generator<Leaf> {
  if (!isMap(value) || steps.length === depth) yield { steps, value };
  else for (const [name, inner] of propertiesOf(value)) yield* leavesOf(inner, depth, [...steps, name]);
}

/** Returns the values that `leavesOf` yields, with the shortest paths first. */
function leavesByDepth(value: unknown, depth: number): Leaf[] {
  return [...leavesOf(value, depth)].sort((a, b) => a.steps.length - b.steps.length);
}

/** @throws Error if the response contains no objects */
export function proposeJson(response: JsonResponse): Proposal {
  const lists = listsIn(response.value).sort((a, b) => b.score - a.score);
  const [best] = lists;
  const doubts: Doubt[] = [];
  if (best === undefined) {
    if (!isMap(response.value))
      throw new Error(`${response.url} returned JSON without objects, so there are no records to propose`);
    doubts.push({ at: ['source'], text: 'The response has no list of objects: all of it is one record.' });
  }
  const elements = best?.elements ?? [response.value as Properties];
  const steps = best?.steps ?? [];
  const { settings: fields, columns } = fieldsOf(elements, doubts);
  const records = Math.min(elements.length, LOOKED_AT);
  const key = keyOf(columns, records, doubts);
  const paginate =
    best === undefined
      ? undefined
      : jsonPages({ ...response, records: { steps, count: elements.length } }, doubts);
  return {
    source: {
      type: 'http',
      url: response.url,
      parse: 'json',
      ...(steps.length === 0 ? {} : { records: pathOf(steps) }),
      ...(paginate === undefined ? {} : { paginate }),
    },
    fields,
    key,
    expect: expectOf(columns, { records, key }),
    doubts,
  };
}

/** Returns all lists of objects. The score of a list says how much it looks like records. */
function listsIn(response: unknown): List[] {
  const lists: List[] = [];
  for (const { steps, value } of leavesByDepth(response, MAX_DEPTH)) {
    if (!Array.isArray(value) || lists.length === MAX_LISTS) continue;
    const elements = value.filter(isMap);
    if (elements.length === 0 || elements.length < value.length / 2) continue;
    const beside = steps.some((step) => BESIDE.test(step)) ? 0.2 : 1;
    const worth = (RECORDS.test(steps.at(-1) ?? 'data') ? 2 : 1) * beside * 0.9 ** steps.length;
    const size = columnsOf(elements.slice(0, 10)).size;
    lists.push({ steps, elements, score: elements.length * size * worth });
  }
  return lists;
}

/** Returns the values of all properties that are not objects, grouped by path. */
function columnsOf(elements: readonly Properties[]): Map<string, { steps: string[]; values: unknown[] }> {
  const columns = new Map<string, { steps: string[]; values: unknown[] }>();
  for (const { steps, value } of elements.flatMap((element) => [...leavesOf(element, FIELD_DEPTH)])) {
    const path = pathOf(steps);
    const column = columns.get(path) ?? { steps, values: [] };
    if (value !== null && value !== '') column.values.push(value);
    columns.set(path, column);
  }
  return columns;
}

function fieldsOf(elements: readonly Properties[], doubts: Doubt[]): Fields {
  const fields = new Fields();
  // Properties of the record itself get their names before nested properties.
  const columns = [...columnsOf(elements.slice(0, LOOKED_AT))].sort(
    ([, a], [, b]) => unwrapped(a.steps).length - unwrapped(b.steps).length,
  );
  for (const [path, { steps, values }] of columns) {
    if (steps.some((step) => step === '__typename' || step === '_links')) continue;
    if (fields.isFull) {
      const text = `Only the first ${MAX_FIELDS} fields: ${path} and others are left out.`;
      doubts.push({ at: ['fields'], text });
      break;
    }
    if (values.every((one) => Array.isArray(one) && one.length === 0)) continue;
    const property = propertyName(unwrapped(steps));
    const { setting, doubt } = kindOf(property, values);
    const name = fields.add(property, values, path, setting);
    if (doubt !== undefined) doubts.push({ at: ['fields', name], text: doubt });
  }
  return fields;
}

function kindOf(name: string, values: readonly unknown[]): { setting?: object; doubt?: string } {
  if (values.every((one) => typeof one === 'number') && isMoment(name, values as number[]))
    return { setting: { date: true } };
  if (!values.every((one) => typeof one === 'string')) return {};
  if (values.every((one) => /^-?\d{1,12}\.\d{1,8}$/.test(one))) {
    const doubt = `A string in the response (${JSON.stringify(values[0])}), read as a number.`;
    return { setting: { number: true }, doubt };
  }
  // Dates in ISO 8601 need no conversion.
  const kind = textKind(values, '');
  return kind !== undefined && 'date' in kind.setting ? kind : {};
}

/** Returns the path without the object that wraps each record. */
function unwrapped(steps: readonly string[]): readonly string[] {
  return steps.length > 1 && WRAPPER.test(steps[0] as string) ? steps.slice(1) : steps;
}

const NEXT_ADDRESS = /^(?:@odata\.)?next(?:_?(?:url|uri|link|href|page|page_?url))?$/i;
const CURSOR = /cursor|(?:page|next|continuation).?token|^(?:after|next|scroll_?id|marker|next_?page)$/i;
const BACK = /prev|before|start_?cursor|first|self|last/i;
const PAGES_DEPTH = 4;

/** @returns the setting `paginate`; undefined if there seem to be no further pages */
function jsonPages(
  response: JsonResponse & { records: { steps: readonly string[]; count: number } },
  doubts: Doubt[],
): object | undefined {
  const { url, records } = response;
  const at = ['source', 'paginate'];
  if (linkTo('next', response.linkHeader) !== undefined) return { type: 'link_header' };
  const leaves = leavesByDepth(response.value, PAGES_DEPTH)
    .filter(({ steps }) => steps.length > 0 && steps.join('\0') !== records.steps.join('\0'))
    .map((leaf) => ({ ...leaf, name: leaf.steps.at(-1) as string }));
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
    const param = paramOf(cursor.name);
    doubts.push({
      at,
      text: `The response has the cursor ${pathOf(cursor.steps)}. The name of its parameter, ${param}, is a guess.`,
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
    if (total === undefined)
      doubts.push({ at, text: 'The response does not say how many records there are.' });
    return { type: 'offset', param, limit: size, ...named(limitParam ?? limit?.name) };
  }
  const page = find(/^(?:page|page_?(?:no|number|index)|current_?page)$/i);
  const pages = find(/^(?:total_?pages|pages|page_?count|last_?page|num_?pages)$/i);
  const morePages = pages === undefined ? isMore : (pages.value as number) > 1;
  if (page !== undefined && morePages !== false) {
    const param = [...query.keys()].find((name) => /page/i.test(name) && name !== limitParam) ?? 'page';
    doubts.push({ at, text: `The name of the parameter, ${param}, is a guess.` });
    return { type: 'page', param, ...(page.value === 0 ? { start: 0 } : {}) };
  }
  return undefined;
}

function named(limitParam: string | undefined): object {
  return limitParam === undefined || limitParam === 'limit' ? {} : { limitParam };
}

/**
 * Guesses the query parameter for a cursor property: `cursor` for `next_cursor`, `pageToken` for `nextPageToken`, and
 * `cursor` for a bare `next`.
 */
function paramOf(name: string): string {
  const rest = name.replace(/^(?:next|end)_?(?=.)/i, '');
  return /^next$/i.test(rest) ? 'cursor' : `${rest.charAt(0).toLowerCase()}${rest.slice(1)}`;
}

/** The JSONPath of property names. */
function pathOf(steps: readonly string[]): string {
  return steps.reduce(
    (path, step) =>
      /^[A-Za-z_]\w*$/.test(step)
        ? `${path}.${step}`
        : `${path}[${step.includes("'") ? JSON.stringify(step) : `'${step}'`}]`,
    '$',
  );
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the properties that a path may name. Names that look like placeholders are left out, because a run would
 * replace the placeholder, and a response could obtain a secret that way.
 */
function propertiesOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([name]) => name.length <= 200 && !/[$#{]\{/.test(name));
}
