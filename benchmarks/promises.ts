/** The targets of the design, and the measured figure for each. */
import { median, type Result, ratio, rounded } from './benchmark.ts';

interface Promised {
  what: string;
  /** The benchmark that measures it. */
  of: string;
  /** Undefined if the figure was not measured. */
  found(result: Result): number | undefined;
  isAtLeast?: number;
  isAtMost?: number;
  unit?: string;
}

const OURS = 'flowhook';

const PROMISES: readonly Promised[] = [
  {
    what: 'rate of queueing jobs with 64 clients, compared with a Fastify route that stores nothing',
    of: 'queue',
    found: (result) => ratio(result, OURS, 'requests at 64'),
    isAtLeast: 0.7,
  },
  {
    what: 'rate of the first read of 200,000 records, compared with Fastify sending from memory',
    of: 'read',
    found: (result) => ratio(result, `${OURS}, identity, first`, '200 k'),
    isAtLeast: 0.35,
  },
  {
    what: 'rate of later reads of 200,000 records, compared with Fastify sending from memory',
    of: 'read',
    found: (result) => ratio(result, `${OURS}, identity, again`, '200 k'),
    isAtLeast: 0.8,
  },
  {
    what: 'rate of deliveries to one endpoint, compared with undici alone',
    of: 'deliver',
    found: (result) => ratio(result, OURS, 'to 1'),
    isAtLeast: 0.3,
  },
  {
    what: 'time from event to receipt at 200 events per second, 95 % of events',
    of: 'deliver',
    found: (result) => value(result, 'p95 at 200/s'),
    isAtMost: 15,
    unit: 'ms',
  },
  {
    what: 'the same for 99 % of events while 5 of 50 endpoints hang, compared with no hanging endpoint',
    of: 'deliver',
    found: (result) => {
      const [hanging, alone] = ['p99 at 200/s, 5 hang', 'p99 at 200/s'].map((name) => value(result, name));
      return hanging === undefined || alone === undefined ? undefined : hanging / alone;
    },
    isAtMost: 2,
  },
  {
    what: 'time to start',
    of: 'footprint',
    found: (result) => value(result, 'start to ready'),
    isAtMost: 400,
    unit: 'ms',
  },
  {
    what: 'memory when idle',
    of: 'footprint',
    found: (result) => value(result, 'resident when idle'),
    isAtMost: 100,
    unit: 'MB',
  },
];

/** A Markdown table. */
export function promisesTable(results: ReadonlyMap<string, Result>): string {
  const rows = PROMISES.flatMap(({ what, of, found, isAtLeast, isAtMost, unit = '' }) => {
    const result = results.get(of);
    const measured = result && found(result);
    if (measured === undefined) return [];
    const isKept = isAtLeast === undefined ? measured <= (isAtMost ?? Number.NaN) : measured >= isAtLeast;
    const target = isAtLeast === undefined ? `at most ${isAtMost}` : `at least ${isAtLeast}`;
    const cells = [
      what,
      `${target} ${unit}`.trim(),
      `${rounded(measured)} ${unit}`.trim(),
      isKept ? 'met' : '**missed**',
    ];
    return [`| ${cells.join(' | ')} |`];
  });
  return ['| | Target | Measured | |', '|---|---:|---:|---|', ...rows].join('\n');
}

function value({ figures }: Result, figure: string): number | undefined {
  const values = figures[OURS]?.[figure];
  return values && median(values);
}
