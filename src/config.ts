/** Every setting: its name, kind, default, whether it is a secret, and one sentence. The only reader of the environment. */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parse as parseYaml } from 'yaml';
import type { EffectiveSetting } from './model/setting.ts';
import { type AddressPolicy, parseAllowNetworks } from './net/address-policy.ts';
import { LOG_LEVELS, type LogLevel } from './observe/log.ts';
import { maskedUrl } from './std/masked-url.ts';
import { nearest } from './std/nearest.ts';
import { databaseUrlMistake, isPostgres } from './store/database-url.ts';
import { parseDuration } from './workflows/duration.ts';

/** Of `package.json`, which stands in the same place from `src/` and from what is built of it. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version;

const LEAST_BACKUP_MS = 60_000;
const MOST_BACKUP_MS = 365 * 24 * 3_600_000;

/** What a node does. Of an SQLite database there is one node, which does all. */
const ROLES = ['all', 'api', 'worker', 'sender'] as const;
export type Role = (typeof ROLES)[number];

interface Setting {
  /** In `flowhook.yaml`. As a flag `--public-url`, in the environment `FLOWHOOK_PUBLIC_URL`. */
  name: string;
  /** What the flag's value is called in the help; none for a switch. */
  value?: string;
  default: string | undefined;
  secret?: true;
  /** It may have a secret in it: never repeated, and taken from a file as well, but it has a flag. */
  mayHoldSecret?: true;
  sentence: string;
}

/** Flags win over the environment, that over `flowhook.yaml`, that over the defaults. */
export const SETTINGS = [
  { name: 'host', value: 'address', default: '127.0.0.1', sentence: 'The address to listen on.' },
  {
    name: 'port',
    value: 'number',
    default: '8080',
    sentence: 'The port to listen on; 0 takes any free one.',
  },
  {
    name: 'data',
    value: 'directory',
    default: './data',
    sentence: 'Where the database and the encryption key lie.',
  },
  {
    name: 'database',
    value: 'url',
    default: undefined,
    mayHoldSecret: true,
    sentence:
      'The database: sqlite:/path/to/file, by default in the data directory, or for any number of nodes ' +
      'postgres://user:password@host/database, with ?sslmode=verify-full and the like.',
  },
  {
    name: 'databasePool',
    value: 'number',
    default: '10',
    sentence: 'How many connections to PostgreSQL this process opens at most; threads have up to 4 more.',
  },
  {
    name: 'databaseListen',
    value: 'on|off',
    default: 'on',
    sentence:
      'Whether nodes tell each other of jobs and deliveries by LISTEN and NOTIFY; off behind a pooler of transactions.',
  },
  {
    name: 'role',
    value: 'role',
    default: 'all',
    sentence: `What this node does, one of ${ROLES.join(', ')}: api answers requests, worker runs jobs, sender delivers webhooks.`,
  },
  {
    name: 'workflows',
    value: 'directory',
    default: './workflows',
    sentence: 'The definitions: <team>/<id>.yaml or <team>/<id>.mts.',
  },
  {
    name: 'bootstrapKey',
    value: 'key',
    default: undefined,
    secret: true,
    sentence: 'A key of at least 16 characters, given to the team default at start with all scopes.',
  },
  {
    name: 'encryptionKey',
    value: 'key',
    default: undefined,
    secret: true,
    sentence:
      'Seals secrets in the database: 32 bytes as base64 or hex. By default made once into the data directory.',
  },
  {
    name: 'publicUrl',
    value: 'url',
    default: undefined,
    sentence: 'The address under which others reach this service; by default the one it listens on.',
  },
  {
    name: 'trustProxy',
    default: 'false',
    sentence: 'Believe the X-Forwarded-* headers of the proxy in front.',
  },
  {
    name: 'corsOrigins',
    value: 'list',
    default: undefined,
    sentence:
      'The origins whose pages may call the API from a browser, with commas between, or *; by default none.',
  },
  {
    name: 'dashboard',
    value: 'on|off',
    default: 'on',
    sentence:
      'Whether there is a dashboard under /ui/; in a clone of the repository it is built when it is missing.',
  },
  {
    name: 'allowNetworks',
    value: 'list',
    default: undefined,
    sentence:
      'Which addresses beyond the public ones webhooks may reach: loopback, private, CIDRs, addresses, or none. ' +
      'By default loopback,private while listening on loopback without publicUrl and trustProxy, else none.',
  },
  {
    name: 'maxRunningJobs',
    value: 'number',
    default: String(Math.max(2, availableParallelism())),
    sentence: 'How many jobs run at once.',
  },
  {
    name: 'maxRunningJobsPerTeam',
    value: 'number',
    default: undefined,
    sentence: "How many of them may be one team's; by default all.",
  },
  {
    name: 'keepJobs',
    value: 'number',
    default: '50',
    sentence: 'How many ended jobs of a workflow are kept, with their logs.',
  },
  {
    name: 'keepJobsDays',
    value: 'number',
    default: '30',
    sentence: 'For how many days ended jobs are kept at most; the last one of a workflow stays.',
  },
  {
    name: 'keepAttemptsDays',
    value: 'number',
    default: '14',
    sentence: 'For how many days the attempts of deliveries are kept: what was sent, and what came back.',
  },
  {
    name: 'keepEventsDays',
    value: 'number',
    default: '30',
    sentence: 'For how many days events are kept, with their ended deliveries: so long they can be replayed.',
  },
  {
    name: 'maxWebhooksPerWorkflow',
    value: 'number',
    default: '1000',
    sentence: 'How many webhooks one workflow may have.',
  },
  {
    name: 'representationCacheMb',
    value: 'number',
    default: '1024',
    sentence:
      'How much disk whole answers may take, kept to be sent again without the database; 0 keeps none.',
  },
  {
    name: 'backupDirectory',
    value: 'directory',
    default: undefined,
    sentence: 'Where backups of an SQLite database are written; by default backups in the data directory.',
  },
  {
    name: 'backupEvery',
    value: 'time|off',
    default: 'off',
    sentence: 'How often the server makes a backup of its SQLite database, such as 24h, or off.',
  },
  {
    name: 'backupKeep',
    value: 'number',
    default: '7',
    sentence: 'How many of those are kept; backups that a command or a migration has made stay.',
  },
  { name: 'logLevel', value: 'level', default: 'info', sentence: `One of ${LOG_LEVELS.join(', ')}.` },
  {
    name: 'logFormat',
    value: 'format',
    default: 'auto',
    sentence: 'json, pretty, or auto: pretty where standard error is a terminal.',
  },
] as const satisfies readonly Setting[];

/** What stands for a secret that is set. */
const MASKED = '***';

export type SettingName = (typeof SETTINGS)[number]['name'];

/** The settings, read and checked. */
export interface Config {
  host: string;
  port: number;
  dataDirectory: string;
  databaseUrl: string;
  databasePool: number;
  databaseListen: boolean;
  role: Role;
  workflowsDirectory: string;
  /** Whether somebody named the workflows directory: then it must exist. */
  workflowsNamed: boolean;
  bootstrapKey: string | undefined;
  /** 32 bytes, when given. */
  encryptionKey: Buffer | undefined;
  publicUrl: string | undefined;
  trustProxy: boolean;
  /** Origins as browsers write them, or `*` alone. */
  corsOrigins: string[];
  dashboard: boolean;
  allowNetworks: AddressPolicy;
  maxRunningJobs: number;
  maxRunningJobsPerTeam: number;
  keepJobs: number;
  keepJobsDays: number;
  keepAttemptsDays: number;
  keepEventsDays: number;
  maxWebhooksPerWorkflow: number;
  representationCacheMb: number;
  backupDirectory: string;
  /** Null: the server makes none by itself. */
  backupEveryMs: number | null;
  backupKeep: number;
  logLevel: LogLevel;
  logPretty: boolean;
  /** Every setting with what holds and where it comes from, secrets masked. */
  settings: readonly EffectiveSetting[];
  /** All of it, for those who pick their part: team secrets, and the few variables that children inherit. */
  environment: ReadonlyMap<string, string>;
}

/** All that is wrong with the settings, at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(mistakes: readonly string[]) {
    super(['These settings are wrong:', ...mistakes].join('\n  '));
  }
}

/** Whether its value is never shown, and may lie in the file that `<variable>_FILE` names. */
export function holdsSecret(setting: Setting): boolean {
  return setting.secret === true || setting.mayHoldSecret === true;
}

/** `publicUrl` → `FLOWHOOK_PUBLIC_URL`. */
export function environmentName(name: SettingName): string {
  return `FLOWHOOK_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** `publicUrl` → `--public-url`. */
export function flagName(name: SettingName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/**
 * Reads the settings.
 *
 * @param flags what the command line says, by setting name
 * @throws ConfigError
 */
export function readConfig(
  flags: Partial<Record<SettingName, string>>,
  environment: NodeJS.ProcessEnv = process.env,
  directory: string = process.cwd(),
): Config {
  const mistakes: string[] = [];
  const found = collect(flags, environment, directory, mistakes);
  const text = (name: SettingName) => found.get(name)?.value;
  /** For settings that have a default. */
  const always = (name: SettingName) => text(name) ?? '';
  const where = (name: SettingName) => found.get(name)?.origin ?? environmentName(name);
  const wrong = (name: SettingName, expected: string) => {
    const hidden = SETTINGS.some((setting) => setting.name === name && holdsSecret(setting));
    mistakes.push(`${where(name)} must be ${expected}${hidden ? '' : `, found "${text(name)}"`}`);
  };
  const whole = (name: SettingName, least: number, most: number): number => {
    const value = Number(always(name));
    if (!/^\d+$/.test(always(name)) || value < least || value > most) {
      wrong(name, `a whole number from ${least} to ${most}`);
    }
    return value;
  };
  const oneOf = <T extends string>(name: SettingName, values: readonly T[]): T => {
    const value = values.find((candidate) => candidate === text(name));
    if (value === undefined) wrong(name, `one of ${values.join(', ')}`);
    return value ?? (values[0] as T);
  };

  const host = always('host');
  const dataDirectory = resolve(directory, always('data'));
  const databaseUrl = text('database') ?? `sqlite:${resolve(dataDirectory, 'flowhook.db')}`;
  const mistake = databaseUrlMistake(databaseUrl);
  if (mistake !== undefined) wrong('database', mistake);
  const role = oneOf('role', ROLES);
  if (role !== 'all' && !isPostgres(databaseUrl)) {
    wrong('role', 'all on SQLite, whose database belongs to one process; several nodes share PostgreSQL');
  }
  const publicUrl = text('publicUrl')?.replace(/\/+$/, '');
  if (publicUrl !== undefined && !/^https?:\/\/[^/\s?#]+[^\s?#]*$/.test(publicUrl)) {
    wrong('publicUrl', 'an http:// or https:// URL without query');
  }
  const trustProxy = oneOf('trustProxy', ['false', 'true']) === 'true';
  const bootstrapKey = text('bootstrapKey');
  if (bootstrapKey !== undefined && !/^[\x21-\x7e]{16,256}$/.test(bootstrapKey)) {
    wrong('bootstrapKey', '16 to 256 printable ASCII characters without spaces or commas');
  }
  const sealedWith = text('encryptionKey');
  const encryptionKey = sealedWith === undefined ? undefined : readKey(sealedWith);
  if (sealedWith !== undefined && encryptionKey === undefined) {
    wrong('encryptionKey', '32 bytes as base64 or as 64 hex digits');
  }
  const open = isLoopback(host) && publicUrl === undefined && !trustProxy;
  let allowNetworks = parseAllowNetworks('none');
  try {
    allowNetworks = parseAllowNetworks(text('allowNetworks') ?? (open ? 'loopback,private' : 'none'));
  } catch (error) {
    mistakes.push(`${where('allowNetworks')}: ${(error as Error).message}`);
  }
  const corsOrigins = (text('corsOrigins') ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  if (!corsOrigins.every((one) => one === '*' || (URL.canParse(one) && new URL(one).origin === one))) {
    wrong('corsOrigins', 'a list of origins such as https://app.example.com, or *');
  }
  const logFormat = oneOf('logFormat', ['auto', 'json', 'pretty']);

  const backupDirectory = resolve(directory, text('backupDirectory') ?? resolve(dataDirectory, 'backups'));
  const backupEveryMs = always('backupEvery') === 'off' ? null : (parseDuration(text('backupEvery')) ?? 0);
  if (backupEveryMs !== null && (backupEveryMs < LEAST_BACKUP_MS || backupEveryMs > MOST_BACKUP_MS)) {
    wrong('backupEvery', 'off, or a time from 1m to 365d such as 24h');
  }
  if (backupEveryMs !== null && isPostgres(databaseUrl)) {
    wrong('backupEvery', 'off on PostgreSQL, which is backed up with its own tools (docs/operate/backup.md)');
  }

  const maxRunningJobs = whole('maxRunningJobs', 1, 1_000);

  const maxRunningJobsPerTeam =
    text('maxRunningJobsPerTeam') === undefined ? maxRunningJobs : whole('maxRunningJobsPerTeam', 1, 1_000);
  const workflowsDirectory = resolve(directory, always('workflows'));

  const config: Config = {
    host,
    port: whole('port', 0, 65_535),
    dataDirectory,
    databaseUrl,
    databasePool: whole('databasePool', 2, 1_000),
    databaseListen: oneOf('databaseListen', ['on', 'off']) === 'on',
    role,
    workflowsDirectory,
    workflowsNamed: found.get('workflows')?.origin !== 'default',
    bootstrapKey,
    encryptionKey,
    publicUrl,
    trustProxy,
    corsOrigins,
    dashboard: oneOf('dashboard', ['on', 'off']) === 'on',
    allowNetworks,
    maxRunningJobs,
    maxRunningJobsPerTeam,
    keepJobs: whole('keepJobs', 1, 1_000_000),
    keepJobsDays: whole('keepJobsDays', 1, 36_500),
    keepAttemptsDays: whole('keepAttemptsDays', 1, 36_500),
    keepEventsDays: whole('keepEventsDays', 4, 36_500),
    maxWebhooksPerWorkflow: whole('maxWebhooksPerWorkflow', 1, 100_000),
    representationCacheMb: whole('representationCacheMb', 0, 1_048_576),
    backupDirectory,
    backupEveryMs,
    backupKeep: whole('backupKeep', 1, 10_000),
    logLevel: oneOf('logLevel', LOG_LEVELS),
    logPretty: logFormat === 'pretty' || (logFormat === 'auto' && process.stderr.isTTY === true),
    settings: effectiveSettings(found, {
      data: dataDirectory,
      database: maskedUrl(databaseUrl),
      publicUrl: publicUrl && maskedUrl(publicUrl),
      workflows: workflowsDirectory,
      backupDirectory,
      allowNetworks: allowNetworks.text,
      maxRunningJobsPerTeam: String(maxRunningJobsPerTeam),
    }),
    environment: new Map(
      Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  return config;
}

/** @param derived what is not simply what was given: paths from here, defaults that follow from others, no passwords */
function effectiveSettings(
  found: ReadonlyMap<SettingName, Found>,
  derived: Partial<Record<SettingName, string | undefined>>,
): EffectiveSetting[] {
  return SETTINGS.map((setting) => {
    const { name, sentence } = setting;
    const { value, origin: from = 'default' } = found.get(name) ?? {};
    const shown = 'secret' in setting && value !== undefined ? MASKED : (derived[name] ?? value ?? null);
    const origin = kindOf(from);
    return {
      name,
      variable: environmentName(name),
      value: shown,
      origin,
      from: origin === 'default' ? null : from,
      sentence,
    };
  });
}

function kindOf(from: string): EffectiveSetting['origin'] {
  if (from === 'default') return 'default';
  if (from.startsWith('--')) return 'flag';
  return from.startsWith('FLOWHOOK_') ? 'environment' : 'file';
}

interface Found {
  value: string;
  /** How the user would name the place: `--port`, `FLOWHOOK_PORT`, `flowhook.yaml: port`, `default`. */
  origin: string;
}

function collect(
  flags: Partial<Record<SettingName, string>>,
  environment: NodeJS.ProcessEnv,
  directory: string,
  mistakes: string[],
): Map<SettingName, Found> {
  const found = new Map<SettingName, Found>();
  const file = readSettingsFile(resolve(directory, 'flowhook.yaml'), mistakes);
  for (const setting of SETTINGS) {
    const { name } = setting;
    const variable = environmentName(name);
    const fromEnvironment = environment[variable];
    const fromFile = environment[`${variable}_FILE`];
    if (flags[name] !== undefined) {
      found.set(name, { value: flags[name], origin: flagName(name) });
    } else if (fromEnvironment !== undefined && fromEnvironment !== '') {
      found.set(name, { value: fromEnvironment, origin: variable });
    } else if (holdsSecret(setting) && fromFile !== undefined && fromFile !== '') {
      const value = readSecretFile(resolve(directory, fromFile), `${variable}_FILE`, mistakes);
      if (value !== undefined) found.set(name, { value, origin: `${variable}_FILE` });
    } else if (file.has(name)) {
      found.set(name, { value: file.get(name) ?? '', origin: `flowhook.yaml: ${name}` });
    } else if (setting.default !== undefined) {
      found.set(name, { value: setting.default, origin: 'default' });
    }
  }
  return found;
}

function readSecretFile(path: string, variable: string, mistakes: string[]): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    mistakes.push(`${variable} names a file that cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}

function readSettingsFile(path: string, mistakes: string[]): Map<string, string> {
  const settings = new Map<string, string>();
  if (!existsSync(path)) return settings;
  let content: unknown;
  try {
    content = parseYaml(readFileSync(path, 'utf8')) ?? {};
  } catch (error) {
    // Its first line: what follows draws the place.
    const [what] = (error as Error).message.split(/:?\n/);
    mistakes.push(`flowhook.yaml cannot be read: ${what}`);
    return settings;
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    mistakes.push('flowhook.yaml must be a map of settings');
    return settings;
  }
  const names: string[] = SETTINGS.map((setting) => setting.name);
  for (const [name, value] of Object.entries(content)) {
    if (!names.includes(name)) {
      const meant = nearest(name, names);
      const advice = meant === undefined ? `There are: ${names.join(', ')}` : `Did you mean "${meant}"?`;
      mistakes.push(`flowhook.yaml: "${name}" is no setting. ${advice}`);
    } else if (typeof value === 'object' && !Array.isArray(value)) {
      mistakes.push(`flowhook.yaml: ${name} must be a single value`);
    } else {
      settings.set(name, String(value));
    }
  }
  return settings;
}

function readKey(text: string): Buffer | undefined {
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
  return bytes.length === 32 ? bytes : undefined;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}
