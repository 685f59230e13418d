/** What follows from several settings: defaults that depend on others, and contradictions. */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import type { Quotas } from '../model/quota.ts';
import { type AddressPolicy, parseAllowNetworks } from '../net/address-policy.ts';
import { isLoopbackHost } from '../net/host.ts';
import { type NetworkList, parseNetworkList } from '../net/network-list.ts';
import { maskedUrl } from '../std/masked-url.ts';
import { isPostgres } from '../store/database-url.ts';
import type { Ceilings } from '../workflows/ceilings.ts';
import type { SettingName, SettingValues } from './settings.ts';

/** Fields whose name or type differs from that of their row. */
export interface Derived {
  dataDirectory: string;
  databaseUrl: string;
  workflowsDirectory: string;
  /** Whether the workflows directory was set explicitly: then it must exist. */
  workflowsNamed: boolean;
  /** Without a slash at its end. */
  publicUrl: string | undefined;
  allowNetworks: AddressPolicy;
  /** Who may read metrics without a key; undefined: nobody. */
  metricsAllow: NetworkList | undefined;
  maxRunningJobs: number;
  maxRunningJobsPerTeam: number;
  maxAddressConnections: number;
  quotas: Quotas;
  /** The most that definitions made over the API may ask for. */
  ceilings: Ceilings;
  backupDirectory: string;
  logPretty: boolean;
}

export function derive(values: SettingValues, isGiven: (name: SettingName) => boolean): Derived {
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

/** Settings that are valid by themselves but contradict each other: which one to change, and what it must be. */
export function contradictions(
  { role, backupEveryMs, tlsCert, tlsKey }: SettingValues,
  { databaseUrl }: Derived,
): [name: SettingName, expected: string][] {
  const found: [SettingName, string][] = [];
  if (tlsKey === undefined && tlsCert !== undefined) found.push(['tlsKey', 'given with FLOWHOOK_TLS_CERT']);
  if (tlsCert === undefined && tlsKey !== undefined) found.push(['tlsCert', 'given with FLOWHOOK_TLS_KEY']);
  if (role !== 'all' && !isPostgres(databaseUrl)) {
    found.push([
      'role',
      'all on SQLite, whose database belongs to one process; several nodes share PostgreSQL',
    ]);
  }
  if (backupEveryMs !== null && isPostgres(databaseUrl)) {
    found.push([
      'backupEvery',
      'off on PostgreSQL, which is backed up with its own tools (docs/operate/backup.md)',
    ]);
  }
  return found;
}

/** Settings that are not shown as they were written: absolute paths, derived values, URLs without passwords. */
export function shownValues(derived: Derived): Partial<Record<SettingName, string | undefined>> {
  return {
    data: derived.dataDirectory,
    database: maskedUrl(derived.databaseUrl),
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
