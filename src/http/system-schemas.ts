/** The shape of how the instance stands, as JSON Schema. */
import { CHECK_GROUPS, FINDING_STATUSES } from '../model/finding.ts';
import { SETTING_ORIGINS } from '../model/setting.ts';
import { isoTime } from './iso-time.ts';

const integer = (description: string) => ({ type: 'integer', description });
const ms = (description: string) => ({ type: 'number', description });
const object = (properties: Record<string, object>, description?: string) => ({
  type: 'object',
  ...(description === undefined ? {} : { description }),
  required: Object.keys(properties),
  properties,
});

const setting = object({
  name: { type: 'string', description: 'In `flowhook.yaml`' },
  variable: { type: 'string', description: 'In the environment' },
  value: { type: ['string', 'null'], description: '`***` for a secret that is set; null: there is none' },
  origin: { enum: SETTING_ORIGINS },
  from: { type: ['string', 'null'], description: 'Such as `--port` or `flowhook.yaml: port`' },
  sentence: { type: 'string' },
});

const finding = object({
  group: { enum: CHECK_GROUPS },
  check: { type: 'string', description: 'The name of the check: it stays the same for ever' },
  status: { enum: FINDING_STATUSES },
  what: { type: 'string', description: 'What was found: a sentence' },
  why: {
    type: ['string', 'null'],
    description: 'What comes of it, or why it was not checked; null when all is well',
  },
  fix: { type: ['string', 'null'], description: 'The next step; null when there is none to take' },
  tookMs: integer('How long it took to find out'),
});

const complete = { type: 'boolean', description: 'Whether it was counted to the end' };

export const systemSchemas = {
  SystemChecks: {
    ...object({
      ok: { type: 'boolean', description: 'Whether no finding is an error' },
      examinedAt: isoTime,
      tookMs: integer('How long all of it took'),
      findings: { type: 'array', items: finding },
    }),
    examples: [
      {
        ok: true,
        examinedAt: '2026-11-21T02:00:00.000Z',
        tookMs: 96,
        findings: [
          {
            group: 'machine',
            check: 'disk-space-data',
            status: 'warning',
            what: '812 MB are free for the data directory (/data)',
            why: 'Migrations copy the database first, and the log of a busy hour takes some hundred MB',
            fix: 'Make room, or keep less: FLOWHOOK_BACKUP_KEEP, FLOWHOOK_KEEP_EVENTS_DAYS',
            tookMs: 1,
          },
        ],
      },
    ],
  },
  System: {
    ...object({
      version: { type: 'string', description: 'Of Flowhook' },
      node: { type: 'string', description: 'The version of Node' },
      platform: { type: 'string', description: 'Such as `linux x64`' },
      startedAt: isoTime,
      uptimeSeconds: integer('Since this node was started'),
      role: { type: 'string', description: 'What this node does: all, api, worker or sender' },
      nodeId: { type: 'string', description: 'The name of this node for as long as it runs' },
      url: { type: 'string', description: 'Under which others reach it, as far as it knows' },
      listening: object({ host: { type: 'string' }, port: { type: 'integer' } }),
      database: object({
        kind: { enum: ['sqlite', 'postgres'] },
        version: { type: 'string' },
        bytes: { type: 'integer' },
        walBytes: { type: ['integer', 'null'], description: 'The write-ahead log; null on PostgreSQL' },
        schema: integer('The version of the tables'),
      }),
      jobs: object(
        {
          queued: { type: 'integer' },
          running: { type: 'integer' },
          retrying: { type: 'integer' },
          complete,
        },
        'Of all teams',
      ),
      deliveries: object(
        {
          waiting: { type: 'integer' },
          oldestWaitingAt: {
            ...isoTime,
            type: ['string', 'null'],
            description: 'When the one was made that has waited longest',
          },
          openCircuits: integer(
            'Endpoints that this node leaves alone for now, because they were out of order',
          ),
          complete,
        },
        'Of all teams',
      ),
      eventLoop: object(
        { p50Ms: ms('Median'), p99Ms: ms('99th percentile'), maxMs: ms('Longest') },
        'How late this node was to whatever was due, in the last whole minute',
      ),
      memory: object(
        {
          residentBytes: { type: 'integer' },
          heapUsedBytes: { type: 'integer' },
          heapTotalBytes: { type: 'integer' },
          externalBytes: { type: 'integer' },
        },
        'Of this node, without the processes of its jobs',
      ),
      settings: { type: 'array', items: setting, description: 'Every setting with what holds on this node' },
    }),
    examples: [
      {
        version: '1.0.0',
        node: '26.10.0',
        platform: 'linux x64',
        startedAt: '2026-11-21T02:00:00.000Z',
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
    ],
  },
};
