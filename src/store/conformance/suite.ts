/**
 * What every driver of the store must do: the list of all cases, which run on both databases. Each file registers its
 * cases with the `open` that it receives.
 */
import { after } from 'node:test';
import type { Store } from '../store.ts';
import { testAgenda } from './agenda.ts';
import { testAttempts } from './attempts.ts';
import { testAudit } from './audit.ts';
import { testCanceling } from './canceling.ts';
import { testClaims } from './claims.ts';
import { testDecisions } from './decisions.ts';
import { testDeliveries } from './deliveries.ts';
import { testDeliverySearch } from './delivery-search.ts';
import { testErasure } from './erasure.ts';
import { testEventHistory } from './event-history.ts';
import { testOutbox } from './events.ts';
import { testFeeds } from './feeds.ts';
import { testHeldTexts } from './find-content.ts';
import { testFreshness } from './freshness.ts';
import { testInspectors } from './inspectors.ts';
import { testJobHistory } from './job-lists.ts';
import { testJobLog } from './job-log.ts';
import { testJobModel } from './job-model.ts';
import { testJobs } from './jobs.ts';
import { testLanes } from './lanes.ts';
import { testMailAddresses } from './mail-addresses.ts';
import { testNextDue } from './next-due.ts';
import { testPages } from './pages.ts';
import { testProfiles } from './profiles.ts';
import { testPublishing } from './publish.ts';
import { testPush } from './push.ts';
import { testQuarantine } from './quarantine.ts';
import { testQuotas } from './quotas.ts';
import { testReading } from './reading.ts';
import { testRecordModel } from './record-model.ts';
import { testRecords } from './records.ts';
import { testRemovingTeams } from './remove-team.ts';
import { testReplaySteps } from './replay-steps.ts';
import { testReplays } from './replays.ts';
import { testRetries } from './retries.ts';
import { testSchedules } from './schedules.ts';
import { testSessions } from './sessions.ts';
import type { Opened } from './setup.ts';
import { testSourceStates } from './source-states.ts';
import { testStaging } from './stage.ts';
import { testStatus } from './status.ts';
import { testTeams } from './teams.ts';
import { testUsage } from './usage.ts';
import { testRetention } from './versions.ts';
import { testWatch } from './watch.ts';
import { testWebhookChanges } from './webhook-changes.ts';
import { testWebhookDestinations } from './webhook-destinations.ts';
import { testWebhooks } from './webhooks.ts';
import { testWorkflows } from './workflows.ts';

/** A store that many cases can use in sequence. */
export interface Reusable extends Opened {
  /** The store, even after `reopen`. */
  current(): Store;
  /** Deletes all rows, like another process, and advances `caseClock`. */
  empty(): void | Promise<void>;
}

/**
 * @param open opens a store with empty tables
 * @param options.modelRuns random runs of each model, unless `MODEL_RUNS` is set
 */
export function testStore(open: () => Promise<Reusable>, options: { modelRuns: number }): void {
  const modelRuns = Number(process.env.MODEL_RUNS ?? options.modelRuns);
  // Each of these cases has its own store, and they run before any other store is open: watchers would be notified of
  // changes by the other store.
  testWatch(open);
  const shared = sharing(open);
  testTeams(shared);
  testQuotas(shared);
  testSessions(shared);
  testAgenda(shared);
  testDecisions(shared);
  testAudit(shared);
  testRemovingTeams(shared);
  testWorkflows(shared);
  testSourceStates(shared);
  testJobs(shared);
  testClaims(shared);
  testAttempts(shared);
  testCanceling(shared);
  testPush(shared);
  testSchedules(shared);
  testNextDue(shared);
  testFreshness(shared);
  testJobLog(shared);
  testJobHistory(shared);
  testRecords(shared);
  testStaging(shared);
  testPublishing(shared);
  testProfiles(shared);
  testQuarantine(shared);
  testReading(shared);
  testRetention(shared);
  testPages(shared);
  testErasure(shared);
  testWebhooks(shared);
  testWebhookChanges(shared);
  testWebhookDestinations(shared);
  testDeliveries(shared);
  testDeliverySearch(shared);
  testLanes(shared);
  testMailAddresses(shared);
  testReplays(shared);
  testReplaySteps(shared);
  testRetries(shared);
  testOutbox(shared);
  testEventHistory(shared);
  testHeldTexts(shared);
  testInspectors(shared);
  testFeeds(shared);
  testStatus(shared);
  testUsage(shared);
  testJobModel(shared, modelRuns);
  testRecordModel(shared, modelRuns);
}

/**
 * Shares one store between many cases, because opening a store takes longer than most cases. Its tables are empty at
 * the start of each case.
 */
export function sharing(open: () => Promise<Reusable>): () => Promise<Opened> {
  let opened: Reusable | undefined;
  after(() => opened?.close());
  return async () => {
    if (opened === undefined) opened = await open();
    else await opened.empty();
    return { ...opened, store: opened.current(), close: async () => {} };
  };
}
