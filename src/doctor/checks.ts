/** All checks, in the order in which they run and are printed. */
import type { Check } from './check.ts';
import {
  backupAge,
  backupPlace,
  damage,
  database,
  encryptionKey,
  notifications,
  schema,
} from './database.ts';
import { dataDirectory, runAs, secretFiles, workflowFiles } from './files.ts';
import { clock, fileSystem, memory, rooms, versions } from './machine.ts';
import { mail } from './mail.ts';
import { certificate, outbound, port } from './network.ts';
import { exposure, networks, settings } from './settings.ts';
import {
  decisions,
  deliveries,
  failingWorkflows,
  freshness,
  schedules,
  waitingJobs,
  webhookEvents,
  webhookHealth,
} from './work.ts';

export const CHECKS: readonly Check[] = [
  ...[versions, memory, clock, ...rooms, fileSystem],
  ...[settings, exposure, networks],
  ...[dataDirectory, secretFiles, runAs, workflowFiles],
  ...[database, schema, damage, encryptionKey, notifications],
  ...[backupAge, backupPlace],
  ...[port, certificate, outbound, mail],
  ...[
    failingWorkflows,
    freshness,
    schedules,
    waitingJobs,
    webhookHealth,
    webhookEvents,
    decisions,
    deliveries,
  ],
];
