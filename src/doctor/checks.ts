/** All checks, in the order in which they run and are reported. */
import { backupAge, backupPlace, newestBackup } from './backups.ts';
import { certificate, publicCertificate } from './certificates.ts';
import type { Check } from './check.ts';
import { damage, database, encryptionKey, log, notifications, schema } from './database.ts';
import { diskWrites, fileSystem, rooms } from './disk.ts';
import { exposure, networks, settings } from './exposure.ts';
import { deletions, failingWorkflows, schedules, waitingJobs } from './jobs.ts';
import { keys } from './keys.ts';
import { clock, memory, openFiles, versions } from './machine.ts';
import { names, outbound } from './network.ts';
import { dataDirectory, encryptionKeyFile, secretFiles } from './permissions.ts';
import { port } from './port.ts';
import { runAs } from './run-as.ts';
import { deliveries, webhookAddresses, webhookEvents, webhookHealth } from './webhooks.ts';
import { workflowFiles } from './workflow-files.ts';

export const CHECKS: readonly Check[] = [
  versions,
  memory,
  openFiles,
  clock,
  ...rooms,
  fileSystem,
  diskWrites,

  settings,
  exposure,
  networks,

  dataDirectory,
  encryptionKeyFile,
  secretFiles,
  runAs,
  workflowFiles,

  database,
  schema,
  damage,
  log,
  encryptionKey,
  notifications,

  backupAge,
  newestBackup,
  backupPlace,

  port,
  certificate,
  publicCertificate,
  names,
  outbound,
  webhookAddresses,

  failingWorkflows,
  schedules,
  waitingJobs,
  webhookHealth,
  webhookEvents,
  deliveries,
  keys,
  deletions,
];
