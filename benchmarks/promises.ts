/** The ratios that the design asks for, and what was measured of each. */
import { median, type Result, ratio, rounded } from './benchmark.ts';

interface Promised {
  what: string;
  /** Of which file. */
  of: string;
  /** How it reads what it holds; undefined where that was not measured. */
  found(result: Result): number | undefined;
  isAtLeast?: number;
  isAtMost?: number;
  unit?: string;
}

const OURS = 'flowhook';

const PROMISES: readonly Promised[] = [
  {
    what: 'queueing a job durably, 64 callers, ratio to a bare Fastify route',
    of: 'queue',
    found: (result) => ratio(result, OURS, 'requests at 64'),
    isAtLeast: 0.7,
  },
  {
    what: 'first whole read of 200,000 records, ratio to Fastify sending from memory',
    of: 'read',
    found: (result) => ratio(result, `${OURS}, identity, first`, '200 k'),
    isAtLeast: 0.35,
  },
  {
    what: 'second whole read of 200,000 records, the same ratio',
    of: 'read',
    found: (result) => ratio(result, `${OURS}, identity, again`, '200 k'),
    isAtLeast: 0.8,
  },
  {
    what: 'deliveries to one endpoint, ratio to a bare undici loop',
    of: 'deliver',
    found: (result) => ratio(result, OURS, 'to 1'),
    isAtLeast: 0.3,
  },
  {
    what: 'event to receipt at 200 a second, p95',
    of: 'deliver',
    found: (result) => value(result, 'p95 at 200/s'),
    isAtMost: 15,
    unit: 'ms',
  },
  {
    what: 'p99 of the other endpoints while 5 of 50 hang, ratio to undisturbed',
    of: 'deliver',
    found: (result) => {
      const [hanging, alone] = ['p99 at 200/s, 5 hang', 'p99 at 200/s'].map((name) => value(result, name));
      return hanging === undefined || alone === undefined ? undefined : hanging / alone;
    },
    isAtMost: 2,
  },
  {
    what: 'start to ready',
    of: 'footprint',
    found: (result) => value(result, 'start to ready'),
    isAtMost: 400,
    unit: 'ms',
  },
  {
    what: 'resident memory when idle',
    of: 'footprint',
    found: (result) => value(result, 'resident when idle'),
    isAtMost: 100,
    unit: 'MB',
  },
];

/** As a table in Markdown. */
export function promisesTable(results: ReadonlyMap<string, Result>): string {
  const rows = PROMISES.flatMap(({ what, of, found, isAtLeast, isAtMost, unit = '' }) => {
    const result = results.get(of);
    const measured = result && found(result);
    if (measured === undefined) return [];
    const isKept = isAtLeast === undefined ? measured <= (isAtMost ?? Number.NaN) : measured >= isAtLeast;
    const asked = isAtLeast === undefined ? `at most ${isAtMost}` : `at least ${isAtLeast}`;
    const cells = [
      what,
      `${asked} ${unit}`.trim(),
      `${rounded(measured)} ${unit}`.trim(),
      isKept ? 'kept' : '**missed**',
    ];
    return [`| ${cells.join(' | ')} |`];
  });
  return ['| | Asked | Measured | |', '|---|---:|---:|---|', ...rows].join('\n');
}

function value({ figures }: Result, figure: string): number | undefined {
  const values = figures[OURS]?.[figure];
  return values && median(values);
}
