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
  mailDomains,
  mailSender,
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
  smtpUrl,
  systemUser,
  trustedProxies,
  unset,
  whole,
} from './kinds.ts';

/** What a node does. On SQLite there is only one node, which does everything. */
const ROLES = ['all', 'api', 'worker', 'sender'] as const;
export type Role = (typeof ROLES)[number];

/**
 * By group and name: the kind with its bounds, the default, and a description. `Config` has a field of the same name
 * (durations end in `Ms`: `backupEvery` is `backupEveryMs`). Values derived from several settings are in `config.ts`. A
 * new setting needs only a row here, the code that uses it, and `npm run reference`.
 */
const TABLE = {
  server: {
    host: setting(listenHost, '127.0.0.1', 'Address to listen on.'),
    port: whole(0, 65_535, 8080, 'Port to listen on. 0 picks any free port.'),
    publicUrl: setting(
      httpUrl,
      unset('the address and port the service listens on', 'https://flowhook.example.com'),
      'URL at which clients reach the service. Links in events and in the dashboard begin with it.',
    ),
    trustProxy: setting(
      trustedProxies,
      'false',
      'Proxies whose X-Forwarded-* headers are trusted: loopback, private, CIDRs and addresses, comma-separated. ' +
        'true trusts every client: use it only if the proxy alone can reach this port.',
    ),
    tlsCert: path(
      'file',
      unset('none', '/etc/flowhook/tls/fullchain.pem'),
      'TLS certificate with its chain (PEM). With it the service serves HTTPS, without it HTTP. The file is reloaded when it changes.',
    ),
    tlsKey: path(
      'file',
      unset('none', '/etc/flowhook/tls/privkey.pem'),
      'Private key of the TLS certificate (PEM).',
    ),
    corsOrigins: origins(
      unset('none', 'https://app.example.com'),
      'Origins whose pages may call the API from a browser, comma-separated, or * for all.',
    ),
    dashboard: onOff(
      'on',
      'Serve the dashboard at /ui/ and the guide at /docs/guide/. In a clone of the repository, the server ' +
        'builds them if they are missing.',
    ),
    drainSeconds: whole(
      1,
      3_600,
      25,
      'Maximum time in seconds that stopping may take. Requests and deliveries that have not ended by then are cut ' +
        'off, and running jobs are released. A supervisor should wait longer before it kills the service.',
    ),
    drainDelaySeconds: whole(
      0,
      600,
      0,
      'Time in seconds between the moment /readyz starts to fail and the moment the port closes, so that a ' +
        'load balancer notices. This time counts toward drainSeconds, and is at most half of it.',
    ),
    role: oneOf(
      ROLES,
      'all',
      'What this node does: api serves requests, worker runs jobs, sender delivers webhooks, all does everything.',
    ),
  },
  database: {
    data: path('directory', './data', 'Directory of the database and the encryption key.'),
    database: setting(
      databaseUrl,
      unset('flowhook.db in the data directory', 'sqlite:/var/lib/flowhook/flowhook.db'),
      'Database URL: sqlite:/path/to/file, or for several nodes postgres://user:password@host/database, with options ' +
        'such as ?sslmode=verify-full.',
      { mayHoldSecret: true },
    ),
    databasePool: whole(
      2,
      1_000,
      10,
      'Maximum number of connections from this process to PostgreSQL. Its threads open up to 4 more.',
    ),
    databaseListen: onOff(
      'on',
      'Nodes notify each other of jobs and deliveries through LISTEN and NOTIFY. Turn it off behind a transaction pooler.',
    ),
  },
  keys: {
    bootstrapKey: secret(
      bootstrapKey,
      'none',
      'API key of at least 16 characters. If the key does not exist, the service creates it at startup, for ' +
        'the team default and with all scopes.',
    ),
    encryptionKey: secret(
      encryptionKey,
      'generated at the first start, in the data directory',
      'Key that encrypts secrets in the database: 32 bytes as base64 or hex.',
    ),
    keepAuditDays: whole(
      1,
      36_500,
      365,
      'Number of days to keep the audit log: who changed what, when, and from where.',
    ),
  },
  jobs: {
    workflows: path(
      'directory',
      './workflows',
      'Directory of the workflow files: <team>/<id>.yaml or <team>/<id>.mts.',
    ),
    runAs: setting(
      systemUser,
      unset("the service's own user", 'nobody'),
      'System user that sources (commands, modules, HTTP) run as: a name, a number, or uid:gid. That user cannot read ' +
        "the service's data, environment or secrets. Requires that the service starts as root.",
    ),
    maxRunningJobs: whole(
      1,
      1_000,
      unset('the number of processors, but at least 3', '4'),
      'Maximum number of jobs whose sources run at the same time on this node. As many again may publish their ' +
        'records. If there are several teams, the last slot is ' +
        'reserved for a team that runs no job here.',
    ),
    maxRunningJobsPerTeam: whole(
      1,
      1_000,
      unset('the value of maxRunningJobs', '2'),
      'Maximum number of jobs of one team that run at the same time on this node.',
    ),
    keepJobs: whole(1, 1_000_000, 50, 'Number of ended jobs to keep for each workflow, with their logs.'),
    keepJobsDays: whole(
      1,
      36_500,
      30,
      'Maximum number of days to keep ended jobs, and records in quarantines. The last job of each workflow is always kept.',
    ),
  },
  records: {
    representationCacheMb: whole(
      0,
      1_048_576,
      1024,
      'Maximum size of the response cache on disk, in MiB. 0 turns the cache off.',
    ),
  },
  webhooks: {
    allowNetworks: setting(
      addressPolicy,
      unset(
        'loopback,private while listening on loopback without publicUrl and trustProxy, else none',
        '10.0.0.0/8',
      ),
      'Addresses, beyond public ones, that webhooks and http sources may reach: loopback, private, CIDRs and ' +
        'addresses, comma-separated, or none.',
    ),
    maxWebhooksPerWorkflow: whole(1, 100_000, 1000, 'Maximum number of webhooks per workflow.'),
    keepAttemptsDays: whole(
      1,
      36_500,
      14,
      'Number of days to keep delivery attempts: the request that was sent, and the response.',
    ),
    keepEventsDays: whole(
      4,
      36_500,
      30,
      'Number of days to keep events and their ended deliveries, which can be replayed until then.',
    ),
  },
  mail: {
    smtpUrl: setting(
      smtpUrl,
      unset('none: webhooks cannot send mail', 'smtp://user:password@mail.example.com:587'),
      'SMTP server that sends mail: smtp:// (STARTTLS) or smtps:// (TLS from the start). STARTTLS is required with a ' +
        'password, unless the server is on this machine. `?tls=` changes that: required, optional, off, or unverified, ' +
        'which accepts every certificate.',
      { mayHoldSecret: true },
    ),
    mailFrom: setting(
      mailSender,
      unset('none; required with smtpUrl', 'Flowhook <flowhook@example.com>'),
      'Sender of mails: an address that the SMTP server may send from, with or without a name.',
    ),
    mailDomains: setting(
      mailDomains,
      unset('any domain', 'example.com'),
      'Domains that mail may be sent to, with their subdomains, comma-separated.',
    ),
  },
  limits: {
    rateLimitPerKey: setting(
      rateOrOff,
      'off',
      'Maximum rate of requests per API key on this node, such as 600/1m, or off. Further requests get status 429.',
    ),
    rateLimitPerAddress: setting(
      rateOrOff,
      'off',
      'Maximum rate of requests per client address (for IPv6 per /64) on this node, or off. A request without a valid ' +
        'key counts as ten.',
    ),
    maxWorkflowsPerTeam: whole(
      0,
      1_000_000,
      unset('no limit', '100'),
      'Maximum number of workflows per team. `flowhook teams set-quota` overrides this and every other quota for one team.',
    ),
    maxWebhooksPerTeam: whole(
      0,
      1_000_000,
      unset('no limit', '100'),
      'Maximum number of webhooks per team, across all its workflows.',
    ),
    maxKeysPerTeam: whole(
      1,
      1_000_000,
      1_000,
      'Maximum number of API keys per team. Revoked and expired keys do not count.',
    ),
    maxRecordsPerTeam: whole(
      0,
      1_000_000_000_000,
      unset('no limit', '5000000'),
      'Maximum number of records per team, in the current versions of its workflows. A run that would exceed it fails.',
    ),
    maxStoredBytesPerTeam: size(
      '1KB',
      '1000TB',
      unset('no limit', '10GB'),
      "Maximum size of a team's records, in the current versions of its workflows. A run that would exceed it fails.",
    ),
    maxApiTimeout: duration(
      '1m',
      '168h',
      '6h',
      'Maximum `limits.timeout` of a workflow created over the API. The maxApi settings do not apply to workflow files.',
    ),
    maxApiMemory: size('16MB', '1TB', '2GB', 'Maximum `limits.memory` of a workflow created over the API.'),
    maxApiOutput: size(
      '1KB',
      '1000TB',
      '20GB',
      'Maximum `limits.output` of a workflow created over the API.',
    ),
    maxApiRecords: whole(
      1,
      1_000_000_000,
      10_000_000,
      'Maximum `limits.records` of a workflow created over the API.',
    ),
    maxApiRetries: whole(0, 100, 10, 'Maximum `retries.max` of a workflow created over the API.'),
    maxConnections: whole(
      1,
      1_000_000,
      10_000,
      'Maximum number of open connections. Beyond it, idle connections are closed.',
    ),
    maxAddressConnections: whole(
      1,
      1_000_000,
      unset('half of maxConnections', '5000'),
      'Maximum number of open connections per client address (for IPv6 per /64). Proxies named by trustProxy are exempt.',
    ),
    headersTimeout: duration(
      '1s',
      '5m',
      '15s',
      'Maximum time for the headers of a request to arrive, and for a new connection to stay unused.',
    ),
    requestTimeout: duration(
      '1s',
      '24h',
      '60s',
      'Maximum time for a whole request to arrive. Pushes with a valid key have no limit.',
    ),
    keepAliveTimeout: duration(
      '1s',
      '1h',
      '72s',
      'Time that an idle connection stays open between requests. Set it longer than the timeout of a proxy in front.',
    ),
  },
  backups: {
    backupDirectory: path(
      'directory',
      unset('backups in the data directory', './backups'),
      'Directory for backups of an SQLite database.',
    ),
    backupEvery: durationOrOff(
      '1m',
      '365d',
      'off',
      'Interval at which the server backs up its SQLite database, such as 24h, or off.',
    ),
    backupKeep: whole(
      1,
      10_000,
      7,
      'Number of scheduled backups to keep. Backups made by a command or a migration are never deleted.',
    ),
  },
  observation: {
    logLevel: oneOf(LOG_LEVELS, 'info', `Lowest level to log: ${LOG_LEVELS.join(', ')}.`, 'level'),
    logFormat: oneOf(
      ['auto', 'json', 'pretty'],
      'auto',
      'Log format. auto is pretty if standard error is a terminal, otherwise json.',
    ),
    logRequests: oneOf(
      LOGGED_REQUESTS,
      'all',
      'Requests to log: all, slow (requests that failed or took at least 1 s), errors, or off.',
    ),
    metrics: onOff('on', 'Serve metrics of this node for Prometheus at /metrics.'),
    metricsAllow: setting(
      networksOrNone,
      unset('loopback while listening on loopback without publicUrl and trustProxy, else none', '10.0.0.0/8'),
      'Clients that may read /metrics without a key: loopback, private, CIDRs and addresses, comma-separated, or none. ' +
        'Other clients need a key with the scope operator.',
    ),
  },
} satisfies Record<string, Record<string, Setting<unknown>>>;

type Table = typeof TABLE;
type SettingGroup = keyof Table;
export type SettingName = { [G in SettingGroup]: keyof Table[G] }[SettingGroup] & string;
type Row<N> = { [G in SettingGroup]: N extends keyof Table[G] ? Table[G][N] : never }[SettingGroup];
type Field<N extends string> = Row<N> extends { unit: 'Ms' } ? `${N}Ms` : N;

/** The value of every setting, before other values are derived from the settings. */
export type SettingValues = {
  [N in SettingName as Field<N>]: Row<N> extends Setting<infer T> ? T : never;
};

export type NamedSetting = Setting<unknown> & { name: SettingName; group: SettingGroup };

/** All settings, in the order of the table. */
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
  keys: 'Keys and the audit log',
  jobs: 'Workflows and jobs',
  records: 'Records',
  webhooks: 'Webhooks and events',
  mail: 'Mail',
  limits: 'Limits',
  backups: 'Backups',
  observation: 'Log and metrics',
};

/** The settings of each group. Groups and settings are in the order of the table. */
export function settingsByGroup(): { title: string; settings: NamedSetting[] }[] {
  const groups = Object.entries(Object.groupBy(SETTINGS, ({ group }) => group));
  return groups.map(([group, settings]) => ({ title: GROUP_TITLES[group as SettingGroup], settings }));
}
