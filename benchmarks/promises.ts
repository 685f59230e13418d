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

const ON_POSTGRES = 'flowhook, PostgreSQL';
const FROM_MEMORY = 'compared with Fastify sending from memory';

const PROMISES: readonly Promised[] = [
  ...(['team', 'list', 'not modified'] as const).map((figure) => ({
    what: `rate of small responses (${figure}), 64 clients, ${FROM_MEMORY}`,
    of: 'small',
    found: (result: Result) => ratio(result, OURS, figure),
    isAtLeast: 0.6,
  })),
  {
    what: 'rate of queueing jobs, 64 clients, compared with a Fastify route that stores nothing',
    of: 'queue',
    found: (result) => ratio(result, OURS, 'requests at 64'),
    isAtLeast: 0.4,
  },
  {
    what: 'the same, compared with BullMQ, synced before each response',
    of: 'queue',
    found: (result) => ratio(result, OURS, 'requests at 64', 'BullMQ, always'),
    isAtLeast: 1.2,
  },
  {
    what: 'the same on PostgreSQL, compared with pg-boss',
    of: 'queue',
    found: (result) => ratio(result, ON_POSTGRES, 'requests at 64', 'pg-boss'),
    isAtLeast: 1.5,
  },
  {
    what: 'rate of deliveries to one endpoint, compared with undici alone',
    of: 'deliver',
    found: (result) => ratio(result, OURS, 'to 1'),
    isAtLeast: 0.4,
  },
  {
    what: 'the same, to 100 endpoints',
    of: 'deliver',
    found: (result) => ratio(result, OURS, 'to 100'),
    isAtLeast: 0.45,
  },
  {
    what: 'evaluations of a simple filter per second, on one core, with parsing the records',
    of: 'evaluate',
    found: (result) => value(result, 'a field, with JSON', OURS),
    isAtLeast: 50_000,
  },
  {
    what: 'time of queue calls while 100 filters decide about 100,000 differences, compared with no filters at rest, 99 % of calls',
    of: 'filters',
    found: (result) => value(result, 'queue p99, ratio', OURS),
    isAtMost: 1.2,
  },
  ...[
    { program: OURS, on: 'SQLite', isAtMost: 15 },
    { program: ON_POSTGRES, on: 'PostgreSQL', isAtMost: 12 },
  ].map(({ program, on, isAtMost }) => ({
    what: `time from event to receipt on ${on} at 200 events per second, 95 % of events`,
    of: 'deliver',
    found: (result: Result) => value(result, 'p95 at 200/s', program),
    isAtMost,
    unit: 'ms',
  })),
  {
    what: 'the same on SQLite for 99 % of events while 5 of 50 endpoints hang, compared with no hanging endpoint',
    of: 'deliver',
    found: (result) => {
      const [hanging, alone] = ['p99 at 200/s, 5 hang', 'p99 at 200/s'].map((name) => value(result, name));
      return hanging === undefined || alone === undefined ? undefined : hanging / alone;
    },
    isAtMost: 2,
  },
  {
    what: 'commands run to their published end, compared with only starting them',
    of: 'jobs',
    found: (result) => ratio(result, OURS, 'commands'),
    isAtLeast: 0.5,
  },
  {
    what: 'time to the first request of an HTTP source, compared with only starting its process',
    of: 'jobs',
    found: (result) => ratio(result, OURS, 'http, first line, median'),
    isAtMost: 1.2,
  },
  {
    what: 'rate of ingesting new records, compared with reading and parsing',
    of: 'ingest',
    found: (result) => ratio(result, `${OURS}, command`, 'first'),
    isAtLeast: 0.25,
  },
  {
    what: 'the same for unchanged records',
    of: 'ingest',
    found: (result) => ratio(result, `${OURS}, command`, 'unchanged'),
    isAtLeast: 0.4,
  },
  {
    what: `rate of the first read of 200,000 records, ${FROM_MEMORY}`,
    of: 'read',
    found: (result) => ratio(result, `${OURS}, identity, first`, '200 k'),
    isAtLeast: 0.2,
  },
  {
    what: `rate of later reads of 200,000 records, ${FROM_MEMORY}`,
    of: 'read',
    found: (result) => ratio(result, `${OURS}, identity, again`, '200 k'),
    isAtLeast: 0.8,
  },
  {
    what: 'processor time of an idle server on SQLite, per minute',
    of: 'footprint',
    found: (result) => value(result, 'processor time when idle'),
    isAtMost: 300,
    unit: 'ms',
  },
  {
    what: 'the same on PostgreSQL',
    of: 'footprint',
    found: (result) => value(result, 'processor time when idle', ON_POSTGRES),
    isAtMost: 1_000,
    unit: 'ms',
  },
  {
    what: 'memory when idle, compared with a process that imports Fastify',
    of: 'footprint',
    found: (result) => ratio(result, OURS, 'resident when idle'),
    isAtMost: 1.25,
  },
  {
    what: 'memory 30 s after a load',
    of: 'footprint',
    found: (result) => value(result, 'after the load'),
    isAtMost: 160,
    unit: 'MB',
  },
  {
    what: 'time to start, compared with a process that imports Fastify',
    of: 'footprint',
    found: (result) => ratio(result, OURS, 'start to ready'),
    isAtMost: 1.7,
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

function value({ figures }: Result, figure: string, program: string = OURS): number | undefined {
  const values = figures[program]?.[figure];
  return values && median(values);
}
