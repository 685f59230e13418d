/**
 * What every driver must do, on SQLite on disk: without waiting for the disk, which is faster, and the nouns that
 * matter most once more with it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { testAttempts } from '../conformance/attempts.ts';
import { testDeliveries } from '../conformance/deliveries.ts';
import { testJobs } from '../conformance/jobs.ts';
import { testRandomRuns } from '../conformance/random-runs.ts';
import { testRecords } from '../conformance/records.ts';
import { type HandMadeChange, type Open, type Opened, PUBLIC_URL } from '../conformance/setup.ts';
import { testTeams } from '../conformance/teams.ts';
import { testWatch } from '../conformance/watch.ts';
import { testWebhooks } from '../conformance/webhooks.ts';
import { testWorkflows } from '../conformance/workflows.ts';
import { openStore } from '../open.ts';
import { Database } from './database.ts';

const withoutDisk: Open = () => open('OFF');
const withDisk: Open = () => open('FULL');

describe('SQLite, synchronous=OFF', () => {
  testTeams(withoutDisk);
  testWorkflows(withoutDisk);
  testJobs(withoutDisk);
  testAttempts(withoutDisk);
  testRecords(withoutDisk);
  testRandomRuns(withoutDisk);
  testWebhooks(withoutDisk);
  testDeliveries(withoutDisk);
  testWatch(withoutDisk);
});

describe('SQLite, synchronous=FULL', () => {
  testJobs(withDisk);
  testRecords(withDisk);
});

async function open(synchronous: 'FULL' | 'OFF'): Promise<Opened> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-store-'));
  const path = join(directory, 'flowhook.db');
  let nowMs = Date.UTC(2026, 0, 1);
  const options = { clock: () => nowMs, publicUrl: () => PUBLIC_URL, log: silentLogger, synchronous };
  const store = await openStore(`sqlite:${path}`, { ...options, own: true });
  return {
    store,
    advance: (ms) => {
      nowMs += ms;
    },
    byHand: async (change, { teamId, id }) => {
      const db = new Database(path);
      db.run(CHANGES[change], teamId, id);
      db.close();
    },
    another: () => openStore(`sqlite:${path}`, options),
    close: async () => {
      await store.close();
      await rm(directory, { recursive: true });
    },
  };
}

const CHANGES: Record<HandMadeChange, string> = {
  'workflow.pause': 'update workflow set paused_at = 1 where team_id = ? and id = ?',
  'webhook.pause': `update webhook set state = 'paused' where team_id = ? and id = ?`,
  'webhook.widen': 'update webhook set workflow_id = null where team_id = ? and id = ?',
};
