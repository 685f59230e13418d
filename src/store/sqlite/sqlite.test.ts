/**
 * What every driver must do, on SQLite on disk: without waiting for the disk, which is faster, and the nouns that
 * matter most once more with it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe } from 'node:test';
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
import type { Store } from '../store.ts';
import { TEAM_TABLES } from '../team-tables.ts';
import { Database } from './database.ts';

const DAY_MS = 86_400_000;

/** Most cases share a store, for starting its thread takes longer than they do. */
const shared = sharing('OFF');
const sharedWithDisk = sharing('FULL');
/** Not those that watch, and would be told of the emptying, nor those of rounds that a store remembers its place in. */
const alone = () => open('OFF');

describe('SQLite, synchronous=OFF', () => {
  testTeams(alone);
  testQuotas(shared);
  testSessions(alone);
  testAudit(shared);
  testRemovingTeams(shared);
  testWorkflows(shared);
  testJobs(shared);
  testClaims(shared);
  testAttempts(shared);
  testCanceling(alone);
  testJobLog(shared);
  testJobHistory(alone);
  testSchedules(shared);
  testJobModel(shared);
  testPush(shared);
  testRecords(shared);
  testPublishing(shared);
  testStaging(shared);
  testReading(shared);
  testRetention(shared);
  testRandomRuns(shared);
  testWebhooks(shared);
  testWebhookChanges(shared);
  testDeliveries(alone);
  testLanes(shared);
  testReplays(alone);
  testOutbox(alone);
  testEventHistory(shared);
  testErasure(shared);
  testHeldTexts(shared);
  testInspectors(shared);
  testStatus(shared);
  testUsage(shared);
  testWatch(alone);
});

describe('SQLite, synchronous=FULL', () => {
  testJobs(sharedWithDisk);
  testRecords(sharedWithDisk);
  testPublishing(sharedWithDisk);
});

/** One store for case after case, each of which finds its tables empty. */
function sharing(synchronous: 'FULL' | 'OFF'): () => Promise<Reusable> {
  let opened: Reusable | undefined;
  after(() => opened?.close());
  return async () => {
    opened ??= await open(synchronous);
    opened.empty();
    return { ...opened, store: opened.current(), close: async () => {} };
  };
}

interface Reusable extends Opened, Counted {
  /** The store that `reopen` has left. */
  current(): Store;
  /** Takes all rows away, as another process would. The clock goes on to midnight, for ids grow with it. */
  empty(): void;
}

async function open(synchronous: 'FULL' | 'OFF'): Promise<Reusable> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-store-'));
  const path = join(directory, 'flowhook.db');
  let nowMs = Date.UTC(2026, 0, 1);
  const options = { clock: () => nowMs, publicUrl: () => PUBLIC_URL, log: silentLogger, synchronous };
  let store = await openStore(`sqlite:${path}`, { ...options, own: true });
  return {
    store,
    current: () => store,
    reopen: async () => {
      await store.close();
      store = await openStore(`sqlite:${path}`, { ...options, own: true });
      return store;
    },
    inspect: async (at) => looking(path, (db) => inspect(db, at)),
    rows: async () => looking(path, rows),
    advance: (ms) => {
      nowMs += ms;
    },
    another: () => openStore(`sqlite:${path}`, options),
    empty: () => {
      nowMs = Math.ceil(nowMs / DAY_MS) * DAY_MS;
      empty(path);
    },
    close: async () => {
      await store.close();
      await rm(directory, { recursive: true });
    },
  };
}

function looking<Result>(path: string, look: (db: Database) => Result): Result {
  const db = new Database(path, { readOnly: true });
  try {
    return look(db);
  } finally {
    db.close();
  }
}

function empty(path: string): void {
  const db = new Database(path);
  try {
    const tables = db.all<{ name: string }>(
      `select name from sqlite_schema where type = 'table' and (name = 'sqlite_sequence' or name not like 'sqlite%')
       order by name = 'team'`, // Others refer to it.
    );
    db.exec(`begin immediate; ${tables.map(({ name }) => `delete from ${name};`).join(' ')} commit`);
  } finally {
    db.close();
  }
}

function rows(db: Database): Record<string, number> {
  const names = ['team', ...TEAM_TABLES.map(({ name }) => name)];
  return Object.fromEntries(
    names.map((name) => [
      name,
      db.get<{ count: number }>(`select count(*) as count from ${name}`)?.count ?? 0,
    ]),
  );
}

/** Counts rows as publishing would have to if nothing were counted while it is written. */
function inspect(db: Database, { teamId, workflowId }: { teamId: string; workflowId: string }): Inspected {
  const workflow = db.get<Record<string, number>>(
    'select * from workflow where team_id = ? and id = ?',
    teamId,
    workflowId,
  ) as Record<string, number>;
  const { number, current_version: current = 0 } = workflow;
  const value = (sql: string, ...values: (number | string)[]): number =>
    db.get<{ value: number }>(sql, ...values)?.value ?? Number.NaN;
  const count = (sql: string, ...values: (number | string)[]): number =>
    value(`select count(*) as value from ${sql}`, ...values);
  const bytes = (where: string, version: number): number =>
    value(
      `select coalesce(sum(length(cast(body as blob))), 0) as value from record where workflow = ? and ${where}`,
      number ?? 0,
      version,
    );
  const written = count('record where workflow = ? and added_in = ?', number ?? 0, current + 1);
  const closed = count('record where workflow = ? and removed_in = ?', number ?? 0, current + 1);
  const changed = count(
    `record old join record new using (workflow, seq)
     where workflow = ? and old.removed_in = ? and new.added_in = old.removed_in`,
    number ?? 0,
    current + 1,
  );
  return {
    counted: {
      added: workflow.staged_added ?? 0,
      changed: workflow.staged_changed ?? 0,
      removed: workflow.staged_removed ?? 0,
      grown: workflow.staged_bytes ?? 0,
      bytes:
        current === 0
          ? 0
          : value(
              'select bytes as value from version where team_id = ? and workflow_id = ? and number = ?',
              teamId,
              workflowId,
              current,
            ),
    },
    found: {
      added: written - changed,
      changed,
      removed: closed - changed,
      grown: bytes('added_in = ?', current + 1) - bytes('removed_in = ?', current + 1),
      bytes: bytes('added_in <= ?2 and (removed_in is null or removed_in > ?2)', current),
    },
    rows: count('record where workflow = ? and added_in <= ?', number ?? 0, current),
    versions: count('version where team_id = ? and workflow_id = ?', teamId, workflowId),
  };
}
