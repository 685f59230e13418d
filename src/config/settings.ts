/** The table of all settings. Flags, environment variables, `flowhook.yaml`, help and reference are derived from it. */
import { LOG_LEVELS } from '../observe/log.ts';
import { LOGGED_REQUESTS } from '../observe/wide-lines.ts';
import {
  addressPolicy,
  bootstrapKey,
  databaseUrl,
  duration,
  durationOrOff,
  encryptionKey,
  httpUrl,
  listenHost,
  networksOrNone,
  oneOf,
  onOff,
  origins,
  path,
  rateOrOff,
  type Setting,
  secret,
  setting,
  size,
  systemUser,
  trustedProxies,
  unset,
  whole,
} from './kinds.ts';

/** What a node does. On SQLite there is one node, which does everything. */
const ROLES = ['all', 'api', 'worker', 'sender'] as const;
export type Role = (typeof ROLES)[number];

/**
 * By group and name: a kind with its bounds, the default, and one sentence of description. `Config` has a field of the
 * same name with the type of the kind (`backupEvery`, a duration, is `backupEveryMs`). What follows from several
 * settings is computed in `config.ts`. A new setting needs only a row here, its use, and `npm run reference`.
 */
const TABLE = {
  server: {
    host: setting(listenHost, '127.0.0.1', 'The address to listen on.'),
    port: whole(0, 65_535, 8080, 'The port to listen on; 0 takes any free one.'),
    publicUrl: setting(
      httpUrl,
      unset('the one it listens on', 'https://flowhook.example.com'),
      'The URL under which others reach this service.',
    ),
    trustProxy: setting(
      trustedProxies,
      'false',
      'The proxies whose X-Forwarded-* headers are trusted: loopback, private, CIDRs and addresses, comma-separated; ' +
        'true trusts every client, so that only the proxy may be able to reach this port.',
    ),
    tlsCert: path(
      'file',
      unset('none: HTTP', '/etc/flowhook/tls/fullchain.pem'),
      'A certificate with its chain, as PEM: the service then speaks HTTPS itself. It is reloaded when it changes.',
    ),
    tlsKey: path(
      'file',
      unset('none', '/etc/flowhook/tls/privkey.pem'),
      'The key of that certificate, as PEM.',
    ),
    corsOrigins: origins(
      unset('none', 'https://app.example.com'),
      'The origins whose pages may call the API from a browser, comma-separated, or *.',
    ),
    dashboard: onOff(
      'on',
      'Whether to serve the dashboard at /ui/ and the guide at /docs/guide/; in a clone of the repository they are built if they are missing.',
    ),
    drainSeconds: whole(
      1,
      3_600,
      25,
      'How many seconds stopping may take: requests, deliveries and the database are finished, and the rest is cut off. Whatever stops the service should wait longer.',
    ),
    drainDelaySeconds: whole(
      0,
      600,
      0,
      'How many of these seconds pass between /readyz failing and the port closing, so that a load balancer notices; at most half.',
    ),
    role: oneOf(
      ROLES,
      'all',
      'What this node does: api answers requests, worker runs jobs, sender delivers webhooks, all does everything.',
    ),
  },
  database: {
    data: path('directory', './data', 'The directory of the database and the encryption key.'),
    database: setting(
      databaseUrl,
      unset('flowhook.db in the data directory', 'sqlite:/var/lib/flowhook/flowhook.db'),
      'The database: sqlite:/path/to/file, or for several nodes postgres://user:password@host/database, with options ' +
        'such as ?sslmode=verify-full.',
      { mayHoldSecret: true },
    ),
    databasePool: whole(
      2,
      1_000,
      10,
      'The maximum number of connections to PostgreSQL of this process; its threads open up to 4 more.',
    ),
    databaseListen: onOff(
      'on',
      'Whether nodes notify each other of jobs and deliveries by LISTEN and NOTIFY; off behind a transaction pooler.',
    ),
  },
  keys: {
    bootstrapKey: secret(
      bootstrapKey,
      'none',
      'An API key of at least 16 characters, created at start for the team default with all scopes.',
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
      'For how many days the audit log is kept: who changed what, when, and from where.',
    ),
  },
  jobs: {
    workflows: path('directory', './workflows', 'The definitions: <team>/<id>.yaml or <team>/<id>.mts.'),
    runAs: setting(
      systemUser,
      unset("the service's own user", 'nobody'),
      'The system user that sources (commands, modules, HTTP) run as: its name, its number, or uid:gid. Only for a service ' +
        'that starts as root. They can then not read what belongs to the service: its data, its environment, its secrets.',
    ),
    maxRunningJobs: whole(
      1,
      1_000,
      unset('as many as there are processors, and at least 3', '4'),
      'How many jobs run at once. While there is more than one team, the last place is left for a team that runs nothing on this node.',
    ),
    maxRunningJobsPerTeam: whole(1, 1_000, unset('all', '2'), 'How many of them may belong to one team.'),
    keepJobs: whole(1, 1_000_000, 50, 'How many ended jobs of each workflow are kept, with their logs.'),
    keepJobsDays: whole(
      1,
      36_500,
      30,
      'For how many days ended jobs are kept at most; the last one of each workflow is always kept.',
    ),
  },
  records: {
    representationCacheMb: whole(
      0,
      1_048_576,
      1024,
      'How many MiB of disk the cache of response bodies may take; 0 turns it off.',
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
      'For how many days the attempts of deliveries are kept: what was sent and what was answered.',
    ),
    keepEventsDays: whole(
      4,
      36_500,
      30,
      'For how many days events and their ended deliveries are kept, and can be replayed.',
    ),
  },
  limits: {
    rateLimitPerKey: setting(
      rateOrOff,
      'off',
      'How many requests a key may send to this node, such as 600/1m, or off. Further requests are answered with 429.',
    ),
    rateLimitPerAddress: setting(
      rateOrOff,
      'off',
      'How many requests an address (for IPv6 a /64) may send to this node, or off; one without a valid key counts as ten.',
    ),
    maxWorkflowsPerTeam: whole(
      0,
      1_000_000,
      unset('any number', '100'),
      'How many workflows a team may have; like every quota, `flowhook teams set-quota` can override it for a team.',
    ),
    maxWebhooksPerTeam: whole(
      0,
      1_000_000,
      unset('any number', '100'),
      'How many webhooks a team may have, in all its workflows.',
    ),
    maxKeysPerTeam: whole(
      1,
      1_000_000,
      1_000,
      'How many API keys a team may have that are neither revoked nor expired.',
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
      'How many bytes the records of a team may take in the current versions of its workflows; a run that would publish more fails.',
    ),
    maxApiTimeout: duration(
      '1m',
      '168h',
      '6h',
      'The longest `limits.timeout` that a workflow made over the API may have. This and the next four do not bind workflow files.',
    ),
    maxApiMemory: size(
      '16MB',
      '1TB',
      '2GB',
      'The largest `limits.memory` that a workflow made over the API may have.',
    ),
    maxApiOutput: size(
      '1KB',
      '1000TB',
      '20GB',
      'The largest `limits.output` that a workflow made over the API may have.',
    ),
    maxApiRecords: whole(
      1,
      1_000_000_000,
      10_000_000,
      'The largest `limits.records` that a workflow made over the API may have.',
    ),
    maxApiRetries: whole(0, 100, 10, 'The largest `retries.max` that a workflow made over the API may have.'),
    maxConnections: whole(
      1,
      1_000_000,
      10_000,
      'How many connections may be open at once; beyond that, idle ones are closed.',
    ),
    maxAddressConnections: whole(
      1,
      1_000_000,
      unset('half of maxConnections', '5000'),
      'How many of them may come from one address (for IPv6 a /64), unless it is a proxy named by trustProxy.',
    ),
    headersTimeout: duration(
      '1s',
      '5m',
      '15s',
      'How long the headers of a request may take to arrive, and how long a new connection may stay unused.',
    ),
    requestTimeout: duration(
      '1s',
      '24h',
      '60s',
      'How long a request may take to arrive with its body; pushes with a valid key have no limit.',
    ),
    keepAliveTimeout: duration(
      '1s',
      '1h',
      '72s',
      'How long a connection stays open between two requests; should be longer than in a proxy in front.',
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
      'How many of those are kept; backups made by a command or a migration are never deleted.',
    ),
  },
  observation: {
    logLevel: oneOf(
      LOG_LEVELS,
      'info',
      `The lowest level that is logged: ${LOG_LEVELS.join(', ')}.`,
      'level',
    ),
    logFormat: oneOf(
      ['auto', 'json', 'pretty'],
      'auto',
      'The format of the log; auto is pretty if standard error is a terminal, otherwise json.',
    ),
    logRequests: oneOf(
      LOGGED_REQUESTS,
      'all',
      'Which requests are logged: all, slow (those that took a second, or failed), errors, or off.',
    ),
    metrics: onOff('on', 'Whether to serve metrics of this node at /metrics, for Prometheus.'),
    metricsAllow: setting(
      networksOrNone,
      unset('loopback while listening on loopback without publicUrl and trustProxy, else none', '10.0.0.0/8'),
      'From where /metrics can be read without a key: loopback, private, CIDRs, addresses, or none. Others need a key ' +
        'with the scope operator.',
    ),
  },
} satisfies Record<string, Record<string, Setting<unknown>>>;

type Table = typeof TABLE;
type SettingGroup = keyof Table;
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

const GROUP_TITLES: Readonly<Record<SettingGroup, string>> = {
  server: 'Server',
  database: 'Database',
  keys: 'Keys and the audit',
  jobs: 'Workflows and jobs',
  records: 'Records',
  webhooks: 'Webhooks and events',
  limits: 'Limits',
  backups: 'Backups',
  observation: 'Log',
};

/** The rows by group, both in the order of the table. */
export function settingsByGroup(): { title: string; settings: NamedSetting[] }[] {
  const groups = Object.entries(Object.groupBy(SETTINGS, ({ group }) => group));
  return groups.map(([group, settings]) => ({ title: GROUP_TITLES[group as SettingGroup], settings }));
}
