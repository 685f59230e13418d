/** What every driver must do, on a real PostgreSQL; each case finds its tables empty. */
import { after, describe } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { testAttempts } from '../conformance/attempts.ts';
import { testAudit } from '../conformance/audit.ts';
import { testCanceling } from '../conformance/canceling.ts';
import { testClaims } from '../conformance/claims.ts';
import { testDeliveries } from '../conformance/deliveries.ts';
import { testErasure } from '../conformance/erasure.ts';
import { testEventHistory } from '../conformance/event-history.ts';
import { testHeldTexts } from '../conformance/held-texts.ts';
import { testInspectors } from '../conformance/inspectors.ts';
import { testJobHistory } from '../conformance/job-history.ts';
import { testJobLog } from '../conformance/job-log.ts';
import { testJobModel } from '../conformance/job-model.ts';
import { testJobs } from '../conformance/jobs.ts';
import { testLanes } from '../conformance/lanes.ts';
import { testOutbox } from '../conformance/outbox.ts';
import { testPublishing } from '../conformance/publishing.ts';
import { testPush } from '../conformance/push.ts';
import { testQuotas } from '../conformance/quotas.ts';
import { testRandomRuns } from '../conformance/random-runs.ts';
import { testReading } from '../conformance/reading.ts';
import { testRecords } from '../conformance/records.ts';
import { type Counted, testRemovingTeams } from '../conformance/removing-teams.ts';
import { testReplays } from '../conformance/replays.ts';
import { testRetention } from '../conformance/retention.ts';
import { testSchedules } from '../conformance/schedules.ts';
import { testSessions } from '../conformance/sessions.ts';
import { type Inspected, type Opened, PUBLIC_URL } from '../conformance/setup.ts';
import { testStaging } from '../conformance/staging.ts';
import { testStatus } from '../conformance/status.ts';
import { testTeams } from '../conformance/teams.ts';
import { testUsage } from '../conformance/usage.ts';
import { testWatch } from '../conformance/watch.ts';
import { testWebhookChanges } from '../conformance/webhook-changes.ts';
import { testWebhooks } from '../conformance/webhooks.ts';
import { testWorkflows } from '../conformance/workflows.ts';
import { openStore } from '../open.ts';
import { TEAM_TABLES } from '../team-tables.ts';
import { Database, openPool } from './database.ts';

const { url, drop } = await makeDatabase();
const pool = openPool({ url, size: 2, log: silentLogger });
const db = new Database(pool);
const DAY_MS = 86_400_000;
/** Goes on from case to case, each of which begins at midnight: ids grow with it in one process, and say no longer when a row was made if it is set back. */
let nowMs = Date.UTC(2026, 0, 1);

describe('PostgreSQL', () => {
  testTeams(open);
  testQuotas(open);
  testSessions(open);
  testAudit(open);
  testRemovingTeams(open);
  testWatch(open);
  testWorkflows(open);
  testJobs(open);
  testClaims(open);
  testAttempts(open);
  testCanceling(open);
  testPush(open);
  testSchedules(open);
  testJobLog(open);
  testJobHistory(open);
  testJobModel(open);
  testWebhooks(open);
  testWebhookChanges(open);
  testDeliveries(open);
  testLanes(open);
  testReplays(open);
  testOutbox(open);
  testHeldTexts(open);
  testInspectors(open);
  testStatus(open);
  testUsage(open);
  testEventHistory(open);
  testErasure(open);
  testRandomRuns(open);
  testRetention(open);
  testReading(open);
  testStaging(open);
  testPublishing(open);
  testRecords(open);
});

after(async () => {
  await pool.end();
  await drop();
});

async function open(): Promise<Opened & Counted> {
  const options = { clock: () => nowMs, publicUrl: () => PUBLIC_URL, log: silentLogger, own: true };
  nowMs = Math.ceil(nowMs / DAY_MS) * DAY_MS;
  // Before it is opened, for it remembers what it finds.
  await empty();
  let store = await openStore(url, options);
  return {
    store,
    reopen: async () => {
      await store.close();
      store = await openStore(url, options);
      return store;
    },
    inspect,
    rows,
    advance: (ms) => {
      nowMs += ms;
    },
    another: () => openStore(url, options),
    close: () => store.close(),
  };
}

async function rows(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const name of ['team', 'lane', ...TEAM_TABLES.map((table) => table.name)]) {
    counts[name] = (await db.get<{ count: number }>(`select count(*) as count from ${name}`))?.count ?? 0;
  }
  return counts;
}

async function empty(): Promise<void> {
  const tables = await db.all<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'schema_version'
     order by tablename = 'team'`, // Others refer to it.
  );
  // Not `truncate`, which makes a new file of every table and index, however empty: 60 ms a case, where this takes 5.
  await db.exec(tables.map(({ name }) => `delete from ${name}`).join('; '));
}

/** Counts rows as publishing would have to if nothing were counted while it is written. */
async function inspect({ teamId, workflowId }: { teamId: string; workflowId: string }): Promise<Inspected> {
  const at = [teamId, workflowId] as const;
  const workflow = (await db.get<Record<string, number>>(
    'select * from workflow where team_id = $1 and id = $2',
    ...at,
  )) as Record<string, number>;
  const { current_version: current = 0 } = workflow;
  const value = async (sql: string, ...values: number[]): Promise<number> =>
    (await db.get<{ value: number }>(`select ${sql}`, ...at, ...values))?.value ?? Number.NaN;
  const count = (sql: string, ...values: number[]) => value(`count(*) as value from ${sql}`, ...values);
  const ofWorkflow = 'where team_id = $1 and workflow_id = $2';
  const bytes = (where: string, version: number) =>
    value(
      `coalesce(sum(length(convert_to(body, 'UTF8'))), 0) as value from record ${ofWorkflow} and ${where}`,
      version,
    );
  const written = await count(`record ${ofWorkflow} and added_in = $3`, current + 1);
  const closed = await count(`record ${ofWorkflow} and removed_in = $3`, current + 1);
  const changed = await count(
    `record old join record new using (team_id, workflow_id, seq)
     ${ofWorkflow} and old.removed_in = $3 and new.added_in = old.removed_in`,
    current + 1,
  );
  return {
    counted: {
      added: workflow.staged_added ?? 0,
      changed: workflow.staged_changed ?? 0,
      removed: workflow.staged_removed ?? 0,
      grown: workflow.staged_bytes ?? 0,
      bytes:
        current === 0 ? 0 : await value(`bytes as value from version ${ofWorkflow} and number = $3`, current),
    },
    found: {
      added: written - changed,
      changed,
      removed: closed - changed,
      grown: (await bytes('added_in = $3', current + 1)) - (await bytes('removed_in = $3', current + 1)),
      bytes: await bytes('added_in <= $3 and (removed_in is null or removed_in > $3)', current),
    },
    rows: await count(`record ${ofWorkflow} and added_in <= $3`, current),
    versions: await count(`version ${ofWorkflow}`),
  };
}
