/** Ten sources as people have them, how each is read, what is expected of it, and which faults it may have. */
import { parse } from 'yaml';
import { departures, rates, weather } from './measurements.ts';
import type { Kind, Row } from './population.ts';
import { bargains, inventory, shop } from './shops.ts';
import { jobBoard, members, people, vacancies } from './work.ts';

export interface QualitySource extends Kind {
  /** The settings of its workflow besides `expect`, as YAML. Undefined: its rows are pushed. */
  settings: ((site: string) => string) | undefined;
  /** The number that matters most, and the share of records that have it, in percent: less is a fault. */
  number: { field: string; filled: number };
  /** A field whose type a fault changes. */
  flip: { field: string; type: string; to(value: unknown): unknown };
}

const fields = (map: Record<string, string>) =>
  `fields: { ${Object.entries(map)
    .map(([name, from]) => `${name}: ${from}`)
    .join(', ')} }\n`;

export const SOURCES: readonly QualitySource[] = [
  {
    ...shop,
    settings: (site) =>
      `source: { type: http, url: "${site}/shop", records: $.items, paginate: { type: page, size: 1000 } }\n`,
    number: { field: 'price', filled: 98 },
    flip: { field: 'stock', type: 'integer', to: () => 'in stock' },
  },
  {
    ...bargains,
    settings: (site) =>
      `source: { type: http, url: "${site}/bargains", parse: html, records: li.offer }\n` +
      fields({
        id: '{ from: a@href, replace: ["^.*/", ""] }',
        name: 'a',
        price: '{ from: .price, number: true }',
        seller: '.seller',
        ends: 'time@datetime',
        url: 'a@href',
      }),
    number: { field: 'price', filled: 95 },
    flip: { field: 'ends', type: 'date', to: () => 'tomorrow' },
  },
  {
    ...jobBoard,
    settings: (site) =>
      `source: { type: http, url: "${site}/job-board", records: $.data.jobs, paginate: { type: cursor, from: $.data.next, param: after } }\n`,
    number: { field: 'salary', filled: 35 },
    flip: { field: 'remote', type: 'boolean', to: (value) => (value === true ? 'yes' : 'no') },
  },
  {
    ...vacancies,
    settings: (site) =>
      `source: { type: http, url: "${site}/vacancies", parse: xml, records: item }\n` +
      fields({
        id: 'id',
        title: 'title',
        employer: 'employer',
        hours: '{ from: hours, number: true }',
        closes: 'closes',
        link: 'link',
      }),
    number: { field: 'hours', filled: 99 },
    flip: { field: 'closes', type: 'date', to: () => 'as soon as possible' },
  },
  {
    ...people,
    settings: (site) =>
      `source: { type: command, command: [node, tap.mjs, "${site}/people"], protocol: singer, streams: [people] }\n`,
    number: { field: 'hours', filled: 99 },
    flip: { field: 'hiredOn', type: 'date', to: (value) => String(value).split('-').reverse().join('.') },
  },
  {
    ...members,
    // A module; its file is in `files`.
    settings: () => '',
    number: { field: 'fee', filled: 99 },
    flip: { field: 'since', type: 'date', to: (value) => Number(String(value).slice(0, 4)) },
  },
  {
    ...weather,
    settings: (site) => `source: { type: http, url: "${site}/weather" }\n`,
    number: { field: 'temperature', filled: 95 },
    flip: { field: 'observedAt', type: 'datetime', to: (value) => Date.parse(String(value)) / 1_000 },
  },
  {
    ...rates,
    settings: (site) =>
      `source: { type: http, url: "${site}/rates" }\n` +
      fields({
        id: 'id',
        rate: '{ from: rate, number: true }',
        asOf: 'asOf',
        volume: '{ from: volume, number: true }',
      }),
    number: { field: 'rate', filled: 100 },
    flip: { field: 'asOf', type: 'date', to: (value) => `day ${value}` },
  },
  {
    ...inventory,
    settings: undefined,
    number: { field: 'quantity', filled: 99 },
    flip: { field: 'cost', type: 'number', to: String },
  },
  {
    ...departures,
    settings: undefined,
    number: { field: 'delay', filled: 55 },
    flip: { field: 'canceled', type: 'boolean', to: (value) => (value === true ? 'yes' : 'no') },
  },
];

/** A fault of one run: what it makes of the rows. */
export type FaultName = 'half empty' | 'type flip' | 'few' | 'duplicates';

export const FAULTS: Readonly<Record<FaultName, (rows: readonly Row[], of: QualitySource) => Row[]>> = {
  'half empty': (rows, { number }) =>
    rows.map((row, at) => (at % 2 === 0 ? row : { ...row, [number.field]: null })),
  'type flip': (rows, { flip }) =>
    rows.map((row) => (isFilled(row[flip.field]) ? { ...row, [flip.field]: flip.to(row[flip.field]) } : row)),
  few: (rows) => rows.slice(0, 3),
  // A page is never repeated as a whole, because the reader of pages would end there.
  duplicates: (rows) => [...rows, ...rows.filter((_, at) => at % 5 === 0)],
};

export function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** What a careful owner expects of the source, as YAML. */
export function expectOf({ number, flip }: QualitySource, otherwise = 'refuse'): string {
  return `expect:
  records: { min: 10, drop: 40%, duplicates: 5% }
  fields:
    ${number.field}: { type: number, filled: ${number.filled}% }
    ${flip.field}: { type: ${flip.type} }
  fresh: 26h
  otherwise: ${otherwise}
`;
}

const TAP = `
const say = (message) => console.log(JSON.stringify(message));
say({ type: 'SCHEMA', stream: 'people', key_properties: ['id'], schema: { type: 'object' } });
for (const record of await (await fetch(process.argv[2])).json()) say({ type: 'RECORD', stream: 'people', record });
`;

/**
 * The workflow files of the sources.
 *
 * @param forms by suffix of the id: `expect` as YAML
 */
export function filesOf(
  site: string,
  forms: Readonly<Record<string, (source: QualitySource) => string>>,
  sources: readonly QualitySource[],
): Record<string, string> {
  const files: Record<string, string> = { 'default/tap.mjs': TAP };
  for (const [suffix, expect] of Object.entries(forms)) {
    for (const source of sources) {
      const { id, settings } = source;
      if (id === 'members' && settings !== undefined)
        files[`default/${id}${suffix}.mts`] = moduleOf(`${site}/${id}`, expect(source));
      else {
        const own = settings?.(site) ?? 'source: { type: push }\n';
        files[`default/${id}${suffix}.yaml`] = own + expect(source);
      }
    }
  }
  return files;
}

/** A module with the same expectations, which YAML and JavaScript write differently. */
function moduleOf(url: string, expect: string): string {
  return (
    `export const workflow = ${JSON.stringify(parse(expect) ?? {})};\n` +
    `export default async function* (ctx) {\n  yield* await (await ctx.fetch('${url}')).json();\n}\n`
  );
}
