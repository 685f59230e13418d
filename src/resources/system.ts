/** The state of the instance as its operator sees it, and what is wrong with it. */
import { CHECK_GROUPS, type Examination, FINDING_STATUSES, SETTING_ORIGINS } from '../model/finding.ts';
import { boolean, choice, integer, list, named, nullable, number, object, text, time } from '../std/shape.ts';
import { QUEUED } from './examples.ts';

const complete = boolean('Whether it was counted to the end');

export const systemResource = named(
  'System',
  object({
    version: text('Of Flowhook'),
    node: text('The version of Node'),
    platform: text('Such as `linux x64`'),
    startedAt: time(),
    uptimeSeconds: integer('Since this node was started'),
    role: text('What this node does: all, api, worker or sender'),
    nodeId: text('The name of this node for as long as it runs'),
    url: text('Under which others reach it, as far as it knows'),
    listening: object({ host: text(), port: integer() }),
    database: object({
      kind: choice(['sqlite', 'postgres']),
      version: text(),
      bytes: integer(),
      walBytes: nullable(integer('The write-ahead log; null on PostgreSQL')),
      schema: integer('The version of the tables'),
    }),
    jobs: object({ queued: integer(), running: integer(), retrying: integer(), complete }, 'Of all teams'),
    deliveries: object(
      {
        waiting: integer(),
        oldestWaitingAt: nullable(time('When the one was made that has waited longest')),
        openCircuits: integer(
          'Endpoints that this node leaves alone for now, because they were out of order',
        ),
        complete,
      },
      'Of all teams',
    ),
    eventLoop: object(
      { p50Ms: number('Median'), p99Ms: number('99th percentile'), maxMs: number('Longest') },
      'How late this node was to whatever was due, in the last whole minute',
    ),
    memory: object(
      {
        residentBytes: integer(),
        heapUsedBytes: integer(),
        heapTotalBytes: integer(),
        externalBytes: integer(),
      },
      'Of this node, without the processes of its jobs',
    ),
    settings: list(
      object({
        name: text('In `flowhook.yaml`'),
        variable: text('In the environment'),
        value: nullable(text('`***` for a secret that is set; null: there is none')),
        origin: choice(SETTING_ORIGINS),
        from: nullable(text('Such as `--port` or `flowhook.yaml: port`')),
        sentence: text(),
      }),
      'Every setting with what holds on this node',
    ),
  }),
  {
    version: '1.0.0',
    node: '26.10.0',
    platform: 'linux x64',
    startedAt: QUEUED,
    uptimeSeconds: 3_600,
    role: 'all',
    nodeId: 'local',
    url: 'http://127.0.0.1:8080',
    listening: { host: '127.0.0.1', port: 8_080 },
    database: { kind: 'sqlite', version: '3.50.4', bytes: 4_194_304, walBytes: 65_536, schema: 8 },
    jobs: { queued: 0, running: 1, retrying: 0, complete: true },
    deliveries: {
      waiting: 2,
      oldestWaitingAt: '2026-11-21T02:59:58.000Z',
      openCircuits: 0,
      complete: true,
    },
    eventLoop: { p50Ms: 0.1, p99Ms: 1.9, maxMs: 12.4 },
    memory: {
      residentBytes: 98_566_144,
      heapUsedBytes: 31_457_280,
      heapTotalBytes: 52_428_800,
      externalBytes: 4_194_304,
    },
    settings: [
      {
        name: 'port',
        variable: 'FLOWHOOK_PORT',
        value: '8080',
        origin: 'default',
        from: null,
        sentence: 'The port to listen on; 0 takes any free one.',
      },
    ],
  },
);

/** What is wrong with the installation. */
export const systemChecksResource = named(
  'SystemChecks',
  object({
    ok: boolean('Whether no finding is an error'),
    examinedAt: time(),
    tookMs: integer('How long all of it took'),
    findings: list(
      object({
        group: choice(CHECK_GROUPS),
        check: text('The name of the check: it stays the same for ever'),
        status: choice(FINDING_STATUSES),
        what: text('What was found: a sentence'),
        why: nullable(text('What comes of it, or why it was not checked; null when all is well')),
        fix: nullable(text('The next step; null when there is none to take')),
        tookMs: integer('How long it took to find out'),
      }),
    ),
  }),
  {
    ok: true,
    examinedAt: QUEUED,
    tookMs: 96,
    findings: [
      {
        group: 'machine',
        check: 'disk-space-data',
        status: 'warning',
        what: '812 MB free for the data directory (/data)',
        why: 'Migrations copy the database first, and the log of a busy hour takes a few hundred MB',
        fix: 'Free up space, or keep less: FLOWHOOK_BACKUP_KEEP, FLOWHOOK_KEEP_EVENTS_DAYS',
        tookMs: 1,
      },
    ],
  },
);

export function shownChecks(of: Examination) {
  return systemChecksResource.of({ ...of, ok: of.findings.every(({ status }) => status !== 'error') });
}
