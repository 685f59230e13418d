/** The questions of docs/performance.md, each with a table of at most six columns and a plot. */

export interface Question {
  /** The name of its place in the page, and of its plot. */
  name: string;
  /** The benchmark that has the figures. */
  benchmark: string;
  /** The figures shown, each with the heading of its column. */
  columns: readonly (readonly [figure: string, heading: string])[];
  /** The programs shown, each with its label. */
  rows: readonly (readonly [program: string, label: string])[];
  /** Headings of the columns that are plotted. Default: all. */
  plotted?: readonly string[];
}

const POSTGRES = 'Flowhook on PostgreSQL';

/** The rows and columns of both tables on growth. */
const GROWTH: Pick<Question, 'columns' | 'rows' | 'plotted'> = {
  columns: [
    ['queueing, p50', 'queueing a job, median'],
    ['a job claimed', 'claiming a job'],
    ['a job run', 'running a job'],
    ['event to receipt, p50', 'event to receipt, median'],
    ['start to ready', 'start'],
  ],
  rows: [
    ['1 ×', 'Flowhook, 1,000 jobs in the database'],
    ['10 ×', 'Flowhook, 10 times as many'],
    ['100 ×', 'Flowhook, 100 times as many'],
    ['100,000 idle teams', 'Flowhook, 1,000 jobs, and 100,000 idle teams'],
  ],
  plotted: ['queueing a job, median', 'running a job'],
};

export const QUESTIONS: readonly Question[] = [
  {
    name: 'queueing',
    benchmark: 'queue',
    columns: [
      ['requests at 1', '1 client'],
      ['requests at 16', '16 clients'],
      ['requests at 64', '64 clients'],
      ['requests at 256', '256 clients'],
      ['p99 at 64', '99 % of calls within, 64 clients'],
    ],
    rows: [
      ['bare Fastify', 'Fastify route that stores nothing'],
      ['flowhook', 'Flowhook on SQLite'],
      ['flowhook, PostgreSQL', POSTGRES],
      ['pg-boss', 'pg-boss'],
      ['graphile-worker', 'Graphile Worker'],
      ['BullMQ, always', 'BullMQ, synced before each response'],
      ['BullMQ, everysec', 'BullMQ, synced once a second'],
    ],
    plotted: ['1 client', '64 clients', '99 % of calls within, 64 clients'],
  },
  {
    name: 'small-responses',
    benchmark: 'small',
    columns: [
      ['team', 'team of the key'],
      ['list', 'empty list'],
      ['not modified', 'unchanged data (304)'],
      ['team, CPU', 'processor time, team'],
      ['not modified, CPU', 'processor time, 304'],
    ],
    rows: [
      ['Fastify from memory', 'Fastify, from memory, checks no key'],
      ['flowhook', 'Flowhook on SQLite'],
    ],
    plotted: ['team of the key', 'unchanged data (304)'],
  },
  {
    name: 'reading',
    benchmark: 'read',
    columns: [
      ['1 k', '1,000 records'],
      ['200 k', '200,000 records'],
      ['1 M', '1,000,000 records'],
      ['200 k, 16 readers', '200,000 records, 16 readers'],
      ['304', 'unchanged (304)'],
    ],
    rows: [
      ['Fastify from memory', 'Fastify, from memory'],
      ['nginx', 'nginx, from a file'],
      ['flowhook, identity, first', 'Flowhook, first read of a version'],
      ['flowhook, identity, next', 'Flowhook, body built in advance'],
      ['flowhook, identity, again', 'Flowhook, later reads'],
      ['flowhook, gzip, again', 'Flowhook, later reads, gzip'],
      ['flowhook on PostgreSQL, identity, first', `${POSTGRES}, first read`],
      ['flowhook on PostgreSQL, identity, again', `${POSTGRES}, later reads`],
      ['rows of SQLite through a schema', 'Fastify, rows of SQLite'],
      ['rows of PostgreSQL through a schema', 'Fastify, rows of PostgreSQL'],
    ],
    plotted: ['200,000 records', '200,000 records, 16 readers'],
  },
  {
    name: 'first-byte',
    benchmark: 'read',
    columns: [
      ['200 k, first byte', 'first byte, 200,000 records'],
      ['1 M, first byte', 'first byte, 1,000,000 records'],
      ['200 k, peak memory', 'peak memory, 200,000 records'],
      ['1 M, peak memory', 'peak memory, 1,000,000 records'],
    ],
    rows: [
      ['Fastify from memory', 'Fastify, from memory'],
      ['nginx', 'nginx, from a file'],
      ['flowhook, identity, first', 'Flowhook, first read of a version'],
      ['flowhook, identity, again', 'Flowhook, later reads'],
      ['flowhook on PostgreSQL, identity, first', `${POSTGRES}, first read`],
      ['rows of SQLite through a schema', 'Fastify, rows of SQLite'],
    ],
    plotted: ['first byte, 200,000 records'],
  },
  {
    name: 'writing',
    benchmark: 'ingest',
    columns: [
      ['first', 'new records'],
      ['unchanged', 'unchanged records'],
      ['peak memory', 'peak memory'],
    ],
    rows: [
      ['read and parse', 'reading and parsing only'],
      ['flowhook, command', 'Flowhook, from a command'],
      ['flowhook, push', 'Flowhook, pushed over HTTP'],
    ],
    plotted: ['new records', 'unchanged records'],
  },
  {
    name: 'latency',
    benchmark: 'deliver',
    columns: [
      ['p50 at 50/s', 'median, 50 events/s'],
      ['p50 at 200/s', 'median, 200 events/s'],
      ['p95 at 200/s', '95 % within, 200 events/s'],
      ['p99 at 200/s', '99 % within, 200 events/s'],
      ['p50 at 1000/s', 'median, 1,000 events/s'],
    ],
    rows: [
      ['flowhook', 'Flowhook on SQLite'],
      ['flowhook, PostgreSQL', POSTGRES],
    ],
    plotted: ['median, 200 events/s', '99 % within, 200 events/s'],
  },
  {
    name: 'bad-endpoints',
    benchmark: 'deliver',
    columns: [
      ['p99 at 200/s', 'none of them'],
      ['p99 at 200/s, 5 hang', '5 hang'],
      ['p99 at 200/s, 5 drip', '5 respond byte by byte'],
      ['p99 at 200/s, 5 reset', '5 reset the connection'],
      ['p99 at 200/s, 5 return 500', '5 return 500'],
    ],
    rows: [
      ['flowhook', 'Flowhook on SQLite'],
      ['flowhook, 1,000 dead', 'Flowhook, beside 1,000 dead endpoints'],
      ['flowhook, PostgreSQL', POSTGRES],
    ],
    plotted: ['none of them', '5 hang'],
  },
  {
    name: 'deliveries',
    benchmark: 'deliver',
    columns: [
      ['to 1', 'to 1 endpoint'],
      ['to 100', 'to 100 endpoints'],
      ['to 1, processor', 'processor time, 1 endpoint'],
      ['to 100, processor', 'processor time, 100 endpoints'],
    ],
    rows: [
      ['bare undici', 'undici, nothing signed or stored'],
      ['flowhook', 'Flowhook on SQLite'],
      ['flowhook, PostgreSQL', POSTGRES],
    ],
    plotted: ['to 1 endpoint', 'to 100 endpoints'],
  },
  {
    name: 'starting-jobs',
    benchmark: 'jobs',
    columns: [
      ['command, first line, median', 'command'],
      ['module, first line, median', 'module'],
      ['http, first line, median', 'HTTP source'],
    ],
    rows: [
      ['bare spawn', 'starting the process only'],
      ['flowhook', 'Flowhook on SQLite'],
    ],
  },
  {
    name: 'jobs-per-second',
    benchmark: 'jobs',
    columns: [
      ['commands', 'commands'],
      ['modules', 'modules'],
      ['http sources', 'HTTP sources'],
    ],
    rows: [
      ['bare spawn', 'running the processes only'],
      ['flowhook', 'Flowhook on SQLite'],
    ],
  },
  {
    name: 'schedules',
    benchmark: 'jobs',
    columns: [
      ['queued late, median', 'median delay'],
      ['queued late, slowest', 'longest delay'],
      ['queue call alone, p50', 'queue call before, median'],
      ['queue call meanwhile, p50', 'queue call meanwhile, median'],
      ['queue call meanwhile, p99', 'queue call meanwhile, 99 % within'],
    ],
    rows: [
      ['10,000 schedules', 'Flowhook on SQLite, 10,000 schedules'],
      ['1,000 schedules, PostgreSQL', `${POSTGRES}, 1,000 schedules`],
    ],
    plotted: ['median delay', 'longest delay'],
  },
  { name: 'growth', benchmark: 'growth', ...GROWTH },
  { name: 'growth-postgres', benchmark: 'growth-postgres', ...GROWTH },
  {
    name: 'filters',
    benchmark: 'filters',
    columns: [
      ['queue p99, undisturbed', 'queue calls at rest, 99 % within'],
      ['queue p99, published', 'after a version without webhooks'],
      ['queue p99, deciding', 'while 100 filters decide'],
      ['to receipt p50, filter', 'event to receipt, with a filter'],
      ['evaluations', 'evaluations beside the calls'],
    ],
    rows: [['flowhook', 'Flowhook on SQLite']],
    plotted: ['queue calls at rest, 99 % within', 'while 100 filters decide'],
  },
  {
    name: 'evaluations',
    benchmark: 'evaluate',
    columns: [
      ['a field', 'record.price < 100'],
      ['five functions, five fields', 'five functions, five fields'],
      ['a regular expression', 'a regular expression'],
      ['a field, with JSON', 'record.price < 100, with JSON'],
      ['five functions, five fields, with JSON', 'five functions, with JSON'],
    ],
    rows: [
      ['JavaScript', 'the same condition in JavaScript'],
      ['flowhook', 'Flowhook'],
    ],
    plotted: ['record.price < 100, with JSON', 'five functions, with JSON'],
  },
  {
    name: 'memory',
    benchmark: 'footprint',
    columns: [
      ['start to ready', 'start'],
      ['resident when idle', 'memory, idle'],
      ['after the load', 'memory, after a load'],
      ['processor time when idle', 'processor time, idle'],
      ['unpacked', 'size, unpacked'],
    ],
    rows: [
      ['Fastify alone', 'Fastify with one route'],
      ['flowhook', 'Flowhook on SQLite'],
      ['flowhook, PostgreSQL', POSTGRES],
    ],
    plotted: ['start', 'memory, idle', 'memory, after a load'],
  },
];
