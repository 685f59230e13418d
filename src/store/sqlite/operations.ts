/** Every write operation by name: what the writer thread can be asked to do. */
import { beat, fail, reclaim, release, setProcess } from './attempts.ts';
import { add as addAudit, prune as pruneAudit } from './audit.ts';
import { cancel, endCanceled, runNow } from './cancel.ts';
import { claim } from './claim.ts';
import { cancelRemoved } from './deliveries.ts';
import { remove as eraseRecords, rewrite, suppress } from './erase.ts';
import { forget } from './forget-webhooks.ts';
import * as inspectors from './inspectors.ts';
import { claim as claimInstance } from './instance.ts';
import { prune as pruneJobs } from './job-history.ts';
import { report } from './job-log.ts';
import { enqueue } from './jobs.ts';
import { create, revoke, rotate as rotateKey, used } from './keys.ts';
import { expire, prune as pruneOutbox } from './outbox-retention.ts';
import { prune } from './prune.ts';
import { publish } from './publish.ts';
import { begin, noteSent } from './push.ts';
import { setQuotas } from './quotas.ts';
import { remove as deleteTeam, retire } from './remove-team.ts';
import { stepReplays } from './replay-steps.ts';
import { replay, startReplay } from './replays.ts';
import { fire } from './schedules.ts';
import {
  begin as beginSession,
  end as endSession,
  makeLink,
  prune as pruneSessions,
  redeem,
  renew,
} from './sessions.ts';
import { settle } from './settle.ts';
import { stage } from './stage.ts';
import { remove, sweep } from './sweep.ts';
import { ensure, ensureSigningKey } from './teams.ts';
import { count as countUsage, prune as pruneUsage } from './usage.ts';
import { change, pause as pauseWebhook, rotate, test } from './webhook-changes.ts';
import { resume as resumeWebhook, subscribe, unsubscribe } from './webhooks.ts';
import { apply, archive, pause, resume } from './workflows.ts';

export const WRITES = {
  'instance.claim': claimInstance,
  'teams.ensure': ensure,
  'teams.ensureSigningKey': ensureSigningKey,
  'teams.retire': retire,
  'teams.delete': deleteTeam,
  'teams.setQuotas': setQuotas,
  'keys.create': create,
  'keys.revoke': revoke,
  'keys.rotate': rotateKey,
  'keys.used': used,
  'sessions.begin': beginSession,
  'sessions.makeLink': makeLink,
  'sessions.redeem': redeem,
  'sessions.renew': renew,
  'sessions.end': endSession,
  'sessions.prune': pruneSessions,
  'workflows.apply': apply,
  'workflows.archive': archive,
  'workflows.pause': pause,
  'workflows.resume': resume,
  'jobs.enqueue': enqueue,
  'jobs.begin': begin,
  'jobs.noteSent': noteSent,
  'jobs.claim': claim,
  'jobs.setProcess': setProcess,
  'jobs.beat': beat,
  'jobs.fail': fail,
  'jobs.release': release,
  'jobs.reclaim': reclaim,
  'jobs.cancel': cancel,
  'jobs.endCanceled': endCanceled,
  'jobs.runNow': runNow,
  'jobs.report': report,
  'jobs.prune': pruneJobs,
  'schedules.fire': fire,
  'records.sweep': sweep,
  'records.stage': stage,
  'records.remove': remove,
  'records.publish': publish,
  'records.prune': prune,
  'webhooks.subscribe': subscribe,
  'webhooks.unsubscribe': unsubscribe,
  'webhooks.rotate': rotate,
  'webhooks.change': change,
  'webhooks.pause': pauseWebhook,
  'webhooks.resume': resumeWebhook,
  'webhooks.test': test,
  'webhooks.forget': forget,
  'deliveries.settle': settle,
  'deliveries.replay': replay,
  'deliveries.startReplay': startReplay,
  'deliveries.stepReplays': stepReplays,
  'deliveries.expire': expire,
  'deliveries.prune': pruneOutbox,
  'deliveries.cancelRemoved': cancelRemoved,
  'inspectors.create': inspectors.create,
  'inspectors.change': inspectors.change,
  'inspectors.remove': inspectors.remove,
  'inspectors.keep': inspectors.keep,
  'inspectors.prune': inspectors.prune,
  'erasure.rewrite': rewrite,
  'erasure.remove': eraseRecords,
  'erasure.suppress': suppress,
  'audit.add': addAudit,
  'audit.prune': pruneAudit,
  'usage.count': countUsage,
  'usage.prune': pruneUsage,
} as const;

export type WriteName = keyof typeof WRITES;
export type WriteInput<Name extends WriteName> = Parameters<(typeof WRITES)[Name]>[1];
export type WriteResult<Name extends WriteName> = ReturnType<(typeof WRITES)[Name]>;
