/** Every operation that is the same on both databases, by noun, and how drivers run it: see `operation.ts`. */
import { batched, lease, read, rounds, write } from '../operation.ts';
import * as attempts from './attempts.ts';
import * as audit from './audit.ts';
import { compare, currentSeqs } from './compare.ts';
import * as deliveries from './deliveries.ts';
import * as erase from './erasure.ts';
import * as events from './events.ts';
import { history as eventHistory } from './events.ts';
import { scanRecords, scanTexts } from './find-content.ts';
import * as inspectors from './inspectors.ts';
import * as instance from './instance.ts';
import * as lists from './job-lists.ts';
import { log, report } from './job-log.ts';
import * as jobs from './jobs.ts';
import * as schedules from './jobs.ts';
import * as keys from './keys.ts';
import { firstDueAt } from './lanes.ts';
import { EXPIRE_START, expire, PRUNE_START, prune as pruneOutbox } from './outbox-retention.ts';
import { publish } from './publish.ts';
import * as quotas from './quotas.ts';
import * as records from './records.ts';
import { changes } from './records.ts';
import { REPLAY_START, stepReplays } from './replay-steps.ts';
import * as replays from './replays.ts';
import * as sessions from './sessions.ts';
import { settle } from './settle.ts';
import { remove, stage, sweep } from './stage.ts';
import * as status from './status.ts';
import * as removeTeam from './teams.ts';
import * as teams from './teams.ts';
import * as usage from './usage.ts';
import * as versions from './versions.ts';
import * as changesOfWebhooks from './webhooks.ts';
import * as webhooks from './webhooks.ts';
import * as workflows from './workflows.ts';

export const OPERATIONS = {
  instance: { claim: write(instance.claim), get: read(instance.get), lease: lease(instance.lease) },
  teams: {
    ensure: write(teams.ensure),
    get: read(teams.get),
    bySlug: read(teams.bySlug),
    list: read(teams.list),
    ensureSigningKey: write(teams.ensureSigningKey),
    signingKeys: read(teams.signingKeys),
    retire: write(removeTeam.retire),
    retired: read(removeTeam.retired),
    delete: write(removeTeam.remove),
    setQuotas: write(quotas.setQuotas),
    quotas: read(quotas.quotas),
    holdings: read(quotas.holdings),
  },
  keys: {
    create: write(keys.create),
    byHash: read(keys.byHash),
    get: read(keys.get),
    list: read(keys.list),
    revoke: write(keys.revoke),
    rotate: write(keys.rotate),
    used: write(keys.used),
  },
  sessions: {
    begin: write(sessions.begin),
    makeLink: write(sessions.makeLink),
    redeem: write(sessions.redeem),
    byHash: read(sessions.byHash),
    renew: write(sessions.renew),
    end: write(sessions.end),
    prune: write(sessions.prune),
  },
  workflows: {
    apply: write(workflows.apply),
    get: read(workflows.get),
    list: read(workflows.list),
    applied: read(workflows.applied),
    archive: write(workflows.archive),
    pause: write(workflows.pause),
    resume: write(workflows.resume),
  },
  jobs: {
    enqueue: batched(jobs.enqueue),
    begin: batched(attempts.begin),
    noteSent: write(attempts.noteSent),
    setProcess: write(attempts.setProcess),
    fail: batched(attempts.fail),
    release: write(attempts.release),
    abandoned: read(attempts.abandoned),
    reclaim: batched(attempts.reclaim),
    cancel: batched(attempts.cancel, { begins: ({ id }) => ({ jobId: id }) }),
    endCanceled: batched(attempts.endCanceled),
    runNow: write(attempts.runNow),
    report: write(report),
    log: read(log),
    get: read(jobs.get),
    list: read(lists.list),
    recent: read(lists.recent),
    counts: read(lists.counts),
    prune: rounds(lists.PRUNE_START, lists.prune),
  },
  schedules: { due: read(schedules.due), ahead: read(schedules.ahead), fire: batched(schedules.fire) },
  records: {
    sweep: write(sweep),
    compare: read(compare),
    stage: write(stage),
    currentSeqs: read(currentSeqs),
    remove: write(remove),
    publish: batched(publish, { isLong: true }),
    version: read(versions.version),
    versions: read(versions.versions),
    page: read(records.page),
    search: read(records.search),
    changes: read(changes),
    prunable: read(versions.prunable),
    prune: rounds(versions.PRUNE_START, versions.prune),
  },
  events: {
    list: read(events.list),
    get: read(events.get),
    history: read(eventHistory),
    newestOfType: read(events.newestOfType),
    newestSequence: read(events.newestSequence),
  },
  webhooks: {
    subscribe: write(webhooks.subscribe),
    list: read(webhooks.list),
    get: read(webhooks.get),
    unsubscribe: write(webhooks.unsubscribe),
    sealed: read(webhooks.sealed),
    rotate: write(changesOfWebhooks.rotate),
    change: write(changesOfWebhooks.change),
    pause: write(changesOfWebhooks.pause),
    resume: write(webhooks.resume),
    test: batched(changesOfWebhooks.test, {
      // Two calls with one key must not run side by side.
      begins: ({ idempotencyKey }) => (idempotencyKey ? undefined : {}),
    }),
    prune: rounds(webhooks.PRUNE_START, webhooks.prune),
  },
  deliveries: {
    get: read(deliveries.get),
    list: read(deliveries.list),
    ofEvent: read(deliveries.ofEvent),
    firstDueAt: read(firstDueAt),
    settle: write(settle),
    replay: write(replays.replay),
    startReplay: write(replays.startReplay),
    getReplay: read(replays.getReplay),
    replayable: read(replays.replayable),
    replayed: read(replays.replayed),
    stepReplays: rounds(REPLAY_START, stepReplays),
    expire: rounds(EXPIRE_START, expire),
    prune: rounds(PRUNE_START, pruneOutbox),
    cancelRemoved: write(webhooks.cancelRemoved),
  },
  inspectors: {
    create: write(inspectors.create),
    list: read(inspectors.list),
    find: read(inspectors.find),
    change: write(inspectors.change),
    remove: write(inspectors.remove),
    storeRequest: write(inspectors.storeRequest),
    requests: read(inspectors.requests),
    signers: read(inspectors.signers),
    prune: write(inspectors.prune),
  },
  erasure: {
    workflows: read(erase.workflows),
    scanRecords: read(scanRecords),
    scanTexts: read(scanTexts),
    rewrite: write(erase.rewrite),
    remove: write(erase.remove),
    suppress: write(erase.suppress),
    suppressed: read(erase.suppressed),
  },
  audit: { add: write(audit.add), list: read(audit.list), prune: write(audit.prune) },
  usage: { count: write(usage.count), read: read(usage.read), prune: write(usage.prune) },
  status: {
    schema: read(status.schema),
    work: read(status.work),
    due: read(status.due),
  },
};
