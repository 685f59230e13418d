/**
 * Lists every operation that both databases share, grouped by noun, and how drivers run each operation (see
 * `operation.ts`). An operation has the same name as its function in the module.
 */
import { batched, batches, leases, lookups, read, reads, write, writes } from '../operation.ts';
import { dueTeams } from './agenda.ts';
import * as attempts from './attempts.ts';
import * as audit from './audit.ts';
import * as deliveries from './deliveries/deliveries.ts';
import { replaying, replaysRun, stepReplay } from './deliveries/replay-steps.ts';
import * as replays from './deliveries/replays.ts';
import * as retries from './deliveries/retries.ts';
import { search } from './deliveries/search.ts';
import * as erasure from './erasure/erase.ts';
import * as content from './erasure/find-content.ts';
import * as events from './events.ts';
import * as feedAddresses from './feeds/addresses.ts';
import * as feeds from './feeds/feeds.ts';
import { changes } from './history/changes.ts';
import { recordChanges } from './history/record-history.ts';
import * as inspectors from './inspectors.ts';
import * as instance from './instance.ts';
import * as lists from './job-lists.ts';
import * as logs from './job-log.ts';
import * as jobs from './jobs.ts';
import * as keys from './keys.ts';
import * as lanes from './lanes.ts';
import * as addresses from './mail/addresses.ts';
import * as outbox from './outbox-retention.ts';
import { publish } from './publish.ts';
import * as freshness from './quality/freshness.ts';
import * as profiles from './quality/profiles.ts';
import * as quarantine from './quarantine/entries.ts';
import { prune as pruneQuarantine } from './quarantine/prune.ts';
import * as stagedQuarantine from './quarantine/staged.ts';
import * as quotas from './quotas.ts';
import * as records from './records.ts';
import * as decisions from './rules/decisions.ts';
import { forPeople } from './rules/for-people.ts';
import { step } from './rules/steps.ts';
import * as sessions from './sessions.ts';
import * as settlements from './settle.ts';
import * as staged from './stage.ts';
import * as teams from './teams.ts';
import * as usage from './usage.ts';
import * as versions from './versions.ts';
import { visited } from './visit.ts';
import * as webhookChanges from './webhooks/change.ts';
import * as webhooks from './webhooks.ts';
import * as workflows from './workflows.ts';

export const OPERATIONS = {
  instance: { ...reads(instance, 'get'), ...writes(instance, 'claim'), ...leases(instance, 'lease') },
  agenda: { due: read(dueTeams, { prepares: true }), visited: write(visited) },
  teams: {
    ...lookups(teams, 'withQuotas'),
    ...reads(teams, 'get', 'bySlug', 'list', 'signingKeys', 'retired'),
    ...writes(teams, 'ensure', 'ensureSigningKey', 'retire'),
    delete: write(teams.remove),
    ...reads(quotas, 'quotas', 'holdings'),
    ...writes(quotas, 'setQuotas'),
  },
  keys: {
    ...lookups(keys, 'byHash', 'get'),
    ...reads(keys, 'list'),
    ...writes(keys, 'create', 'revoke', 'rotate', 'used'),
  },
  sessions: {
    ...reads(sessions, 'byHash'),
    ...writes(sessions, 'begin', 'makeLink', 'redeem', 'renew', 'end', 'prune'),
  },
  workflows: {
    ...lookups(workflows, 'get'),
    ...reads(workflows, 'list', 'applied', 'state'),
    ...writes(workflows, 'apply', 'archive', 'pause', 'resume', 'setState'),
  },
  jobs: {
    ...batches(jobs, 'enqueue'),
    ...batches(attempts, 'begin', 'fail', 'reclaim', 'endCanceled'),
    cancel: batched(attempts.cancel, { begins: ({ id }) => ({ jobId: id }) }),
    ...writes(attempts, 'noteSent', 'setProcess', 'release', 'runNow'),
    ...lookups(attempts, 'abandoned'),
    ...writes(logs, 'report'),
    ...reads(logs, 'log'),
    ...lookups(jobs, 'get'),
    ...lookups(lists, 'summaries'),
    ...reads(lists, 'list', 'recent', 'counts'),
    prune: write(lists.prune),
  },
  freshness: { ...reads(freshness, 'ahead', 'countStale'), ...writes(freshness, 'markStale') },
  schedules: { ...lookups(jobs, 'due', 'nextDueAt'), ...reads(jobs, 'ahead'), ...batches(jobs, 'fire') },
  records: {
    ...writes(staged, 'sweep', 'stage', 'remove'),
    ...reads(records, 'compare', 'currentSeqs', 'currentTotal'),
    publish: batched(publish, { isLong: true }),
    ...lookups(versions, 'version'),
    ...reads(versions, 'versions', 'versionAt', 'prunable'),
    ...reads(records, 'page', 'search'),
    changes: read(changes),
    recordChanges: read(recordChanges),
    prune: write(versions.prune),
  },
  profiles: reads(profiles, 'list', 'earlier'),
  quarantine: {
    ...reads(quarantine, 'list', 'find', 'count', 'get', 'published', 'isPublished'),
    ...reads(stagedQuarantine, 'keys'),
    ...writes(stagedQuarantine, 'stage'),
    ...writes(quarantine, 'drop'),
    prune: write(pruneQuarantine),
  },
  events: { ...lookups(events, 'list', 'get', 'newestSequence'), ...reads(events, 'history') },
  webhooks: {
    ...lookups(webhooks, 'get', 'sealed'),
    ...reads(webhooks, 'list'),
    ...writes(webhooks, 'subscribe', 'unsubscribe', 'rotate', 'pause', 'resume'),
    ...writes(webhookChanges, 'change'),
    ...writes(addresses, 'verify', 'withdraw', 'noteVerificationMail'),
    // A call with an idempotency key gets its own transaction, because two calls with the same key must not run in the
    // same batch.
    test: batched(webhooks.test, { begins: ({ idempotencyKey }) => (idempotencyKey ? undefined : {}) }),
    prune: write(webhooks.prune),
  },
  deliveries: {
    ...reads(deliveries, 'get', 'list', 'ofEvent'),
    search: read(search, { prepares: true }),
    ...lookups(lanes, 'firstDueAt'),
    ...reads(lanes, 'nextDueAt'),
    settle: write(settlements.settle, { prepares: true }),
    ...reads(replays, 'getReplay', 'replayable', 'replayed'),
    ...writes(replays, 'replay', 'startReplay'),
    ...reads(retries, 'retryable', 'replaysOfRetry'),
    ...writes(retries, 'startRetry'),
    replaying: read(replaying),
    stepReplay: write(stepReplay),
    replaysRun: read(replaysRun),
    ...writes(outbox, 'expire', 'prune'),
    ...writes(webhooks, 'cancelRemoved'),
  },
  lanes: { ...lookups(lanes, 'afterSearch'), raise: write(lanes.raiseLanes, { prepares: true }) },
  decisions: {
    ...lookups(decisions, 'pending', 'quiet', 'ended', 'digest', 'endedDigest'),
    ...reads(decisions, 'list', 'oldestPending'),
    forPeople: read(forPeople, { prepares: true }),
    step: write(step, { prepares: true }),
    raise: write(decisions.raise, { prepares: true }),
  },
  feeds: {
    ...lookups(feedAddresses, 'open'),
    ...reads(feeds, 'list', 'get'),
    ...writes(feeds, 'create', 'change', 'rotate', 'revoke'),
    prune: write(feedAddresses.prune),
  },
  inspectors: {
    ...reads(inspectors, 'list', 'find', 'requests', 'signers'),
    ...writes(inspectors, 'create', 'change', 'remove', 'storeRequest', 'prune'),
  },
  erasure: {
    ...reads(content, 'scanRecords', 'scanTexts'),
    ...reads(erasure, 'suppressed'),
    ...writes(erasure, 'rewrite', 'remove', 'suppress'),
  },
  audit: { ...reads(audit, 'list'), ...writes(audit, 'add', 'prune') },
  usage: { ...reads(usage, 'read'), ...writes(usage, 'count', 'prune') },
  status: reads(instance, 'schema', 'work', 'due'),
};
