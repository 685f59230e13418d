/** Watching on SQLite: each batch is reported once, and commits of other processes without details. */

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { subscribe } from '../conformance/sending.ts';
import { makeJob, makeWorkflow } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';
import { ANYTHING, type Touched, untouched } from '../transaction.ts';

async function withStore(run: (store: Store, another: () => Promise<Store>) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-watch-'));
  const open = () =>
    openStore(`sqlite:${directory}/flowhook.db`, {
      publicUrl: () => '',
      log: silentLogger,
      synchronous: 'OFF',
    });
  const store = await open();
  try {
    await run(store, open);
  } finally {
    await store.close();
    await rm(directory, { recursive: true });
  }
}

test('operations of one batch are reported together, and more than 64 webhooks as any', () =>
  withStore(async (store) => {
    const at = await makeWorkflow(store);
    for (let n = 0; n < 64; n++) await subscribe(store, at, ['workflow_queued', String(n)]);
    const id = await subscribe(store, at, ['workflow_canceled']);
    const reports: Touched[] = [];
    store.watch((touched) => reports.push(touched));
    const target = { teamId: at.teamId, id };
    await Promise.all([store.webhooks.test(target), store.webhooks.test(target), makeJob(store, at)]);
    const jobs = { jobs: true, teams: [at.teamId] };
    assert.deepEqual(reports, [{ ...untouched(), ...jobs, deliveries: true, lanes: null }]);
  }));

test('reports that another process may have changed anything', () =>
  withStore(async (store, another) => {
    const noticed = Promise.withResolvers<Touched>();
    store.watch(noticed.resolve);
    const other = await another();
    await other.teams.ensure({ slug: 'acme' });
    assert.deepEqual(await noticed.promise, ANYTHING);
    await other.close();
  }));
