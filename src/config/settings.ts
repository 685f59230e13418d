/** The table of all settings. Flags, environment variables, `flowhook.yaml`, help and reference are derived from it. */
import { LOG_LEVELS } from '../observe/log.ts';
import { LOGGED_REQUESTS } from '../observe/wide-lines.ts';
import {
  duration,
  durationOrOff,
  list,
  oneOf,
  onOff,
  path,
  type Setting,
  secret,
  setting,
  size,
  text,
  unset,
  whole,
} from './kinds.ts';
import {
  addressPolicy,
  bootstrapKey,
  databaseUrl,
  encryptionKey,
  httpUrl,
  networksOrNone,
  origin,
  rateOrOff,
  trustedProxies,
} from './readings.ts';

/** What a node does. On SQLite there is one node, which does everything. */
const ROLES = ['all', 'api', 'worker', 'sender'] as const;
export type Role = (typeof ROLES)[number];

/**
 * By group and name: a kind with its bounds, the default, and one sentence of description. `Config` has a field of the
 * same name with the type of the kind (`backupEvery`, a duration, is `backupEveryMs`). What follows from several
 * settings is computed in `derive.ts`. A new setting needs only a row here, its use, and `npm run reference`.
 */
export const TABLE = {
  server: {
    host: text(
      {
        placeholder: 'address',
        expected: 'an address or a name of this machine',
        pattern: /^[^\s/?#@[\]]+$/,
      },
      '127.0.0.1',
      'The address to listen on.',
    ),
    port: whole(0, 65_535, 8080, 'The port to listen on; 0 takes any free one.'),
    publicUrl: setting(
      httpUrl,
      unset('the one it listens on', 'https://flowhook.example.com'),
      'The address under which others reach this service.',
    ),
    trustProxy: setting(
      trustedProxies,
      'false',
      'Whose X-Forwarded-* headers are believed: loopback, private, CIDRs and addresses with commas between; ' +
        'true believes whoever is connected, so that nobody but the proxy may reach this port.',
    ),
    tlsCert: path(
      'file',
      unset('none: HTTP', '/etc/flowhook/tls/fullchain.pem'),
      'A certificate with its chain, as PEM: then HTTPS is spoken, without a proxy. It is read again when it changes.',
    ),
    tlsKey: path(
      'file',
      unset('none', '/etc/flowhook/tls/privkey.pem'),
      'The key of that certificate, as PEM.',
    ),
    corsOrigins: list(
      origin,
      unset('none', 'https://app.example.com'),
      'The origins whose pages may call the API from a browser, with commas between, or *.',
    ),
    dashboard: onOff(
      'on',
      'Whether there is a dashboard under /ui/, and the guide under /docs/guide/; in a clone of the repository they are built when they are missing.',
    ),
    drainSeconds: whole(
      1,
      3_600,
      25,
      'How long stopping may take: requests, deliveries and the database come to an end, and what has not is cut. Whoever stops the service should wait longer.',
    ),
    drainDelaySeconds: whole(
      0,
      600,
      0,
      'How much of that passes between /readyz saying no and the port being closed, for a load balancer to hear it; half at most.',
    ),
    role: oneOf(
      ROLES,
      'all',
      'What this node does: api answers requests, worker runs jobs, sender delivers webhooks.',
    ),
  },
  database: {
    data: path('directory', './data', 'Where the database and the encryption key lie.'),
    database: setting(
      databaseUrl,
      unset('flowhook.db in the data directory', 'sqlite:/var/lib/flowhook/flowhook.db'),
      'The database: sqlite:/path/to/file, or for any number of nodes postgres://user:password@host/database, with ' +
        '?sslmode=verify-full and the like.',
      { mayHoldSecret: true },
    ),
    databasePool: whole(
      2,
      1_000,
      10,
      'How many connections to PostgreSQL this process opens at most; threads have up to 4 more.',
    ),
    databaseListen: onOff(
      'on',
      'Whether nodes tell each other of jobs and deliveries by LISTEN and NOTIFY; off behind a pooler of transactions.',
    ),
  },
  keys: {
    bootstrapKey: secret(
      bootstrapKey,
      'none',
      'A key of at least 16 characters, given to the team default at start with all scopes.',
    ),
    encryptionKey: secret(
      encryptionKey,
      'made once into the data directory',
      'Seals secrets in the database: 32 bytes as base64 or hex.',
    ),
    keepAuditDays: whole(
      1,
      36_500,
      365,
      'For how many days the audit is kept: who changed what, when, and from where.',
    ),
  },
  jobs: {
    workflows: path('directory', './workflows', 'The definitions: <team>/<id>.yaml or <team>/<id>.mts.'),
    maxRunningJobs: whole(
      1,
      1_000,
      unset('as many as there are processors, and at least 2', '4'),
      'How many jobs run at once.',
    ),
    maxRunningJobsPerTeam: whole(1, 1_000, unset('all', '2'), "How many of them may be one team's."),
    keepJobs: whole(1, 1_000_000, 50, 'How many ended jobs of a workflow are kept, with their logs.'),
    keepJobsDays: whole(
      1,
      36_500,
      30,
      'For how many days ended jobs are kept at most; the last one of a workflow stays.',
    ),
  },
  records: {
    representationCacheMb: whole(
      0,
      1_048_576,
      1024,
      'How much disk whole answers may take, kept to be sent again without the database; 0 keeps none.',
    ),
  },
  webhooks: {
    allowNetworks: setting(
      addressPolicy,
      unset(
        'loopback,private while listening on loopback without publicUrl and trustProxy, else none',
        '10.0.0.0/8',
      ),
      'Which addresses beyond the public ones webhooks and http sources may reach: loopback, private, CIDRs, addresses, or none.',
    ),
    maxWebhooksPerWorkflow: whole(1, 100_000, 1000, 'How many webhooks one workflow may have.'),
    keepAttemptsDays: whole(
      1,
      36_500,
      14,
      'For how many days the attempts of deliveries are kept: what was sent, and what came back.',
    ),
    keepEventsDays: whole(
      4,
      36_500,
      30,
      'For how many days events are kept, with their ended deliveries: so long they can be replayed.',
    ),
  },
  limits: {
    rateLimitPerKey: setting(
      rateOrOff,
      'off',
      'How many requests a key may make of this node, such as 600/1m, or off. Beyond it calls are answered with 429.',
    ),
    rateLimitPerAddress: setting(
      rateOrOff,
      'off',
      'How many requests may come from an address (of IPv6 from a /64) to this node, or off; one without a good key counts as ten.',
    ),
    maxWorkflowsPerTeam: whole(
      0,
      1_000_000,
      unset('any number', '100'),
      'How many workflows a team may have, unless `flowhook teams set-quota` says otherwise for it; as all quotas.',
    ),
    maxWebhooksPerTeam: whole(
      0,
      1_000_000,
      unset('any number', '100'),
      'How many webhooks a team may have, over all its workflows.',
    ),
    maxRecordsPerTeam: whole(
      0,
      1_000_000_000_000,
      unset('any number', '5000000'),
      'How many records a team may have in the current versions of its workflows; a run that would publish more fails.',
    ),
    maxStoredBytesPerTeam: size(
      '1KB',
      '1000TB',
      unset('any number', '10GB'),
      'How many bytes the records of the current versions of its workflows may have together; a run that would publish more fails.',
    ),
    maxConnections: whole(
      1,
      1_000_000,
      10_000,
      'How many connections may be open at once; beyond it, those that are idle are closed.',
    ),
    maxAddressConnections: whole(
      1,
      1_000_000,
      unset('half of maxConnections', '5000'),
      'How many of them may come from one address (of IPv6 from a /64), unless it is a proxy that trustProxy names.',
    ),
    headersTimeout: duration(
      '1s',
      '5m',
      '15s',
      'How long the headers of a request may take to arrive, and a new connection to be used.',
    ),
    requestTimeout: duration(
      '1s',
      '24h',
      '60s',
      'How long a request may take to arrive with its body; pushes of those with a good key may take any time.',
    ),
    keepAliveTimeout: duration(
      '1s',
      '1h',
      '72s',
      'How long a connection stays open between two requests; longer than a proxy in front keeps it.',
    ),
  },
  backups: {
    backupDirectory: path(
      'directory',
      unset('backups in the data directory', './backups'),
      'Where backups of an SQLite database are written.',
    ),
    backupEvery: durationOrOff(
      '1m',
      '365d',
      'off',
      'How often the server makes a backup of its SQLite database, such as 24h, or off.',
    ),
    backupKeep: whole(
      1,
      10_000,
      7,
      'How many of those are kept; backups that a command or a migration has made stay.',
    ),
  },
  observation: {
    logLevel: oneOf(
      LOG_LEVELS,
      'info',
      `From which level on the log tells: ${LOG_LEVELS.join(', ')}.`,
      'level',
    ),
    logFormat: oneOf(
      ['auto', 'json', 'pretty'],
      'auto',
      'How lines of the log look; auto is pretty where standard error is a terminal, else json.',
    ),
    logRequests: oneOf(
      LOGGED_REQUESTS,
      'all',
      'Which requests have a line in the log: all, those that were slow (a second) or failed, errors alone, or off.',
    ),
    metrics: onOff('on', 'Whether /metrics has the numbers of this node, for Prometheus.'),
    metricsAllow: setting(
      networksOrNone,
      unset('loopback while listening on loopback without publicUrl and trustProxy, else none', '10.0.0.0/8'),
      'From where /metrics is read without a key: loopback, private, CIDRs, addresses, or none. Others need one with ' +
        'the scope operator.',
    ),
  },
} satisfies Record<string, Record<string, Setting<unknown>>>;

type Table = typeof TABLE;
export type SettingGroup = keyof Table;
export type SettingName = { [G in SettingGroup]: keyof Table[G] }[SettingGroup] & string;
type Row<N> = { [G in SettingGroup]: N extends keyof Table[G] ? Table[G][N] : never }[SettingGroup];
type Field<N extends string> = Row<N> extends { unit: 'Ms' } ? `${N}Ms` : N;

/** The values of all rows, before anything is derived from them. */
export type SettingValues = {
  [N in SettingName as Field<N>]: Row<N> extends Setting<infer T> ? T : never;
};

export type NamedSetting = Setting<unknown> & { name: SettingName; group: SettingGroup };

/** The rows, in the order of the table. */
export const SETTINGS: readonly NamedSetting[] = Object.entries(TABLE).flatMap(([group, rows]) =>
  Object.entries(rows).map(([name, setting]: [string, Setting<unknown>]) => ({
    ...setting,
    name: name as SettingName,
    group: group as SettingGroup,
  })),
);
