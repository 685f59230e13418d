/** Reads and checks the settings, and derives values from them. No other file reads the environment. */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import type { Ceilings } from '../definitions/api-bounds.ts';
import type { EffectiveSetting } from '../model/finding.ts';
import type { Quotas } from '../model/quota.ts';
import { type AddressPolicy, parseAllowNetworks } from '../net/address-policy.ts';
import { isLoopbackHost, type NetworkList, parseNetworkList } from '../net/host.ts';
import type { TracingSettings } from '../observe/tracing.ts';
import { maskedUrl } from '../std/printable.ts';
import { isPostgres } from '../store/database-url.ts';
import { type NamedSetting, SETTINGS, type SettingName, type SettingValues } from './settings.ts';
import { collect, environmentName, type Found, holdsSecret, type Sources } from './sources.ts';
import { readTracing } from './tracing.ts';

/** Every field of the settings table, and the values derived from the settings. */
export interface Config extends Omit<SettingValues, keyof Derived | Renamed>, Derived {
  /** Every setting with its effective value and its origin, secrets masked. */
  settings: readonly EffectiveSetting[];
  /** Where traces are sent, read from OpenTelemetry's variables. Null means that tracing is off. */
  tracing: TracingSettings | null;
  /** The whole environment, for team secrets and the few variables that child processes inherit. */
  environment: ReadonlyMap<string, string>;
}

/** Settings whose derived field has a different name. */
type Renamed = 'data' | 'database' | 'workflows' | 'logFormat';

/** Lists every mistake in the settings. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** Each mistake is one sentence that names the flag, variable or file. */
  readonly mistakes: readonly string[];
  constructor(mistakes: readonly string[]) {
    super(['Invalid settings:', ...mistakes].join('\n  '));
    this.mistakes = mistakes;
  }
}

/**
 * Reads the settings.
 *
 * @param flags values of command-line flags, by setting name
 * @throws ConfigError
 */
export function readConfig(
  flags: Sources['flags'],
  environment: NodeJS.ProcessEnv = process.env,
  directory: string = process.cwd(),
): Config {
  const mistakes: string[] = [];
  const found = collect({ flags, environment, directory }, mistakes);
  const wrong = new Set<SettingName>();
  const refuse = (name: SettingName, why: string) => {
    const { value, origin = environmentName(name) } = found.get(name) ?? {};
    const hidden = SETTINGS.some((setting) => setting.name === name && holdsSecret(setting));
    mistakes.push(`${origin} ${why}${hidden || value === undefined ? '' : `, found "${maskedUrl(value)}"`}`);
    wrong.add(name);
  };

  const values = Object.fromEntries(
    SETTINGS.map((setting) => {
      const written = found.get(setting.name)?.value;
      const value = written === undefined ? setting.absent : setting.read(written, directory);
      const isRefused = written !== undefined && value === undefined;
      if (isRefused) refuse(setting.name, setting.mistake?.(written) ?? `must be ${setting.expected}`);
      return [setting.name + (setting.unit ?? ''), isRefused ? initialOf(setting, directory) : value];
    }),
  ) as SettingValues;
  const derived = derive(values, (name) => (found.get(name)?.origin ?? 'default') !== 'default');
  // If the database URL is invalid, the database is unknown, and settings cannot be compared with it.
  if (!wrong.has('database')) {
    for (const [name, expected] of contradictions(values, derived)) refuse(name, `must be ${expected}`);
  }
  const tracing = readTracing(environment, mistakes);
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  return {
    ...values,
    ...derived,
    settings: effectiveSettings(found, shownValues(derived, values)),
    tracing,
    environment: new Map(
      Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
}

/** Returns the default of a setting. It replaces an invalid value so that all other settings can still be checked. */
function initialOf(setting: NamedSetting, directory: string): unknown {
  return setting.default === undefined ? setting.absent : setting.read(setting.default, directory);
}

/** This text is shown instead of a secret that is set. */
const MASKED = '***';

/** @param shown values to show instead of the text that was set */
function effectiveSettings(
  found: ReadonlyMap<SettingName, Found>,
  shown: Partial<Record<SettingName, string | undefined>>,
): EffectiveSetting[] {
  return SETTINGS.map(({ name, sentence, secret }) => {
    const { value, origin: from = 'default' } = found.get(name) ?? {};
    const origin = originOf(from);
    return {
      name,
      variable: environmentName(name),
      value: secret === true && value !== undefined ? MASKED : (shown[name] ?? value ?? null),
      origin,
      from: origin === 'default' ? null : from,
      sentence,
    };
  });
}

function originOf(from: string): EffectiveSetting['origin'] {
  if (from === 'default') return 'default';
  if (from.startsWith('--')) return 'flag';
  return from.startsWith('FLOWHOOK_') ? 'environment' : 'file';
}

/** Fields whose name or type differs from the setting that they are derived from. */
interface Derived {
  dataDirectory: string;
  databaseUrl: string;
  workflowsDirectory: string;
  /** Whether the workflows directory was set explicitly. If so, the directory must exist. */
  workflowsNamed: boolean;
  /** Without a trailing slash. */
  publicUrl: string | undefined;
  allowNetworks: AddressPolicy;
  /** The clients that may read metrics without a key. Undefined means none. */
  metricsAllow: NetworkList | undefined;
  maxRunningJobs: number;
  maxRunningJobsPerTeam: number;
  maxAddressConnections: number;
  quotas: Quotas;
  /** The highest limits that a definition created over the API may have. */
  ceilings: Ceilings;
  backupDirectory: string;
  logPretty: boolean;
}

function derive(values: SettingValues, isGiven: (name: SettingName) => boolean): Derived {
  const publicUrl = values.publicUrl?.replace(/\/+$/, '');
  const isOpen = isLoopbackHost(values.host) && publicUrl === undefined && !values.trustProxy;
  const metricsAllow = values.metricsAllow ?? (isOpen ? parseNetworkList('loopback') : undefined);
  const maxRunningJobs = values.maxRunningJobs ?? Math.max(3, availableParallelism());
  return {
    dataDirectory: values.data,
    databaseUrl: values.database ?? `sqlite:${resolve(values.data, 'flowhook.db')}`,
    workflowsDirectory: values.workflows,
    workflowsNamed: isGiven('workflows'),
    publicUrl,
    allowNetworks: values.allowNetworks ?? parseAllowNetworks(isOpen ? 'loopback,private' : 'none'),
    metricsAllow: metricsAllow === 'none' ? undefined : metricsAllow,
    maxRunningJobs,
    maxRunningJobsPerTeam: values.maxRunningJobsPerTeam ?? maxRunningJobs,
    quotas: {
      workflows: values.maxWorkflowsPerTeam ?? null,
      webhooks: values.maxWebhooksPerTeam ?? null,
      keys: values.maxKeysPerTeam,
      records: values.maxRecordsPerTeam ?? null,
      storedBytes: values.maxStoredBytesPerTeam ?? null,
      runningJobs: values.maxRunningJobsPerTeam ?? maxRunningJobs,
    },
    ceilings: {
      timeoutMs: values.maxApiTimeoutMs,
      memoryBytes: values.maxApiMemory,
      outputBytes: values.maxApiOutput,
      records: values.maxApiRecords,
      retries: values.maxApiRetries,
    },
    maxAddressConnections: values.maxAddressConnections ?? Math.ceil(values.maxConnections / 2),
    backupDirectory: values.backupDirectory ?? resolve(values.data, 'backups'),
    logPretty:
      values.logFormat === 'pretty' || (values.logFormat === 'auto' && process.stderr.isTTY === true),
  };
}

/**
 * Finds settings that are each valid but contradict each other. Returns each setting to change, and what it must be.
 */
function contradictions(
  { role, backupEveryMs, tlsCert, tlsKey, smtpUrl, mailFrom }: SettingValues,
  { databaseUrl }: Derived,
): [name: SettingName, expected: string][] {
  const found: [SettingName, string][] = [];
  if (tlsKey === undefined && tlsCert !== undefined) found.push(['tlsKey', 'set with FLOWHOOK_TLS_CERT']);
  if (tlsCert === undefined && tlsKey !== undefined) found.push(['tlsCert', 'set with FLOWHOOK_TLS_KEY']);
  if (smtpUrl !== undefined && mailFrom === undefined) found.push(['mailFrom', 'set with FLOWHOOK_SMTP_URL']);
  if (role !== 'all' && !isPostgres(databaseUrl)) {
    found.push([
      'role',
      'all on SQLite, which only one process can use. To run several nodes, use PostgreSQL',
    ]);
  }
  if (backupEveryMs !== null && isPostgres(databaseUrl)) {
    found.push([
      'backupEvery',
      'off on PostgreSQL, which has its own backup tools (/docs/guide/operate/backup.html on a running server)',
    ]);
  }
  return found;
}

/**
 * Settings that are shown differently from what was set: absolute paths, derived values, and URLs without passwords.
 */
function shownValues(
  derived: Derived,
  { smtpUrl }: SettingValues,
): Partial<Record<SettingName, string | undefined>> {
  return {
    data: derived.dataDirectory,
    database: maskedUrl(derived.databaseUrl),
    smtpUrl: smtpUrl?.name,
    publicUrl: derived.publicUrl && maskedUrl(derived.publicUrl),
    workflows: derived.workflowsDirectory,
    backupDirectory: derived.backupDirectory,
    allowNetworks: derived.allowNetworks.text,
    metricsAllow: derived.metricsAllow?.text ?? 'none',
    maxRunningJobs: String(derived.maxRunningJobs),
    maxRunningJobsPerTeam: String(derived.maxRunningJobsPerTeam),
    maxAddressConnections: String(derived.maxAddressConnections),
  };
}
