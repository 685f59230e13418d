/** The state and the health checks of the instance, as its operator sees them. */
import { CHECK_GROUPS, type Examination, FINDING_STATUSES, SETTING_ORIGINS } from '../model/finding.ts';
import { boolean, choice, integer, list, named, nullable, number, object, text, time } from '../std/shape.ts';
import { QUEUED } from './examples.ts';

const complete = boolean('`false` if counting stopped early because there are 10,000 or more');

export const systemResource = named(
  'System',
  object({
    version: text('Flowhook version'),
    node: text('Node.js version'),
    platform: text('Operating system and architecture, such as `linux x64`'),
    startedAt: time(),
    uptimeSeconds: integer('Seconds since this node started'),
    role: text('Role of this node: `all`, `api`, `worker` or `sender`'),
    nodeId: text('ID of this node, which changes at every restart'),
    url: text('URL at which clients reach the service: `FLOWHOOK_PUBLIC_URL`, or the listening address'),
    listening: object({ host: text(), port: integer() }),
    database: object({
      kind: choice(['sqlite', 'postgres']),
      version: text(),
      bytes: integer('Size of the database in bytes'),
      walBytes: nullable(integer('Size of the write-ahead log in bytes. `null` on PostgreSQL')),
      schema: integer('Version of the database schema'),
    }),
    jobs: object(
      { queued: integer(), running: integer(), retrying: integer(), complete },
      'Unfinished jobs of all teams',
    ),
    deliveries: object(
      {
        waiting: integer(),
        oldestWaitingAt: nullable(
          time('Creation time of the delivery that has waited longest. `null` if none is waiting'),
        ),
        openCircuits: integer('Number of failing endpoints whose circuit breaker is open on this node'),
        complete,
      },
      'Waiting deliveries of all teams',
    ),
    eventLoop: object(
      {
        p50Ms: number('Median delay'),
        p99Ms: number('99th percentile of the delay'),
        maxMs: number('Longest delay'),
      },
      'Event loop delay of this node in the last full minute, or since its start, in milliseconds',
    ),
    memory: object(
      {
        residentBytes: integer(),
        heapUsedBytes: integer(),
        heapTotalBytes: integer(),
        externalBytes: integer(),
      },
      'Memory of this node in bytes, without the processes of its jobs',
    ),
    settings: list(
      object({
        name: text('Name of the setting in `flowhook.yaml`'),
        variable: text('Name of the environment variable'),
        value: nullable(text('Effective value; `***` for a secret. `null` if the setting has none')),
        origin: choice(SETTING_ORIGINS),
        from: nullable(
          text('Source of the value, such as `--port` or `flowhook.yaml: port`. `null` for a default'),
        ),
        sentence: text('Purpose of the setting'),
      }),
      'Settings of this node with their effective values',
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
        sentence: 'Port to listen on. 0 picks any free port.',
      },
    ],
  },
);

export const systemChecksResource = named(
  'SystemChecks',
  object({
    ok: boolean('`true` if no finding is an error'),
    examinedAt: time(),
    tookMs: integer('Duration of all checks in milliseconds'),
    findings: list(
      object({
        group: choice(CHECK_GROUPS),
        check: text('Name of the check, which never changes'),
        status: choice(FINDING_STATUSES),
        what: text('Result of the check, as a sentence'),
        why: nullable(
          text('Consequence of the problem, or why the check was skipped. `null` if all is well'),
        ),
        fix: nullable(text('Next step. `null` if there is nothing to do')),
        tookMs: integer('Duration of the check in milliseconds'),
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
