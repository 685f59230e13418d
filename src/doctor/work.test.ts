/** Checks for late or stuck work, by the clock of the database. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parseYamlDefinition } from '../definitions/definition.ts';
import type { Definition } from '../model/workflow.ts';
import { parseAllowNetworks } from '../net/address-policy.ts';
import { silentLogger } from '../observe/log.ts';
import { openStore } from '../store/open.ts';
import { examine, type Subject } from './check.ts';
import { CHECKS } from './checks.ts';

const MINUTE_MS = 60_000;
const START = Date.UTC(2026, 0, 1);

const directory = await mkdtemp(join(tmpdir(), 'flowhook-stuck-'));
let nowMs = START;
const databaseUrl = `sqlite:${join(directory, 'flowhook.db')}`;
const store = await openStore(databaseUrl, {
  clock: () => nowMs,
  publicUrl: () => '',
  log: silentLogger,
  synchronous: 'OFF',
});
after(async () => {
  await store.close();
  await rm(directory, { recursive: true, force: true });
});
const { id: teamId } = await store.teams.ensure({ slug: 'acme' });

async function find(name: string, isServed: boolean) {
  const subject: Subject = {
    settings: {
      host: '127.0.0.1',
      port: 0,
      dataDirectory: directory,
      databaseUrl,
      databaseListen: true,
      role: 'all',
      workflowsDirectory: join(directory, 'workflows'),
      workflowsNamed: false,
      encryptionKey: undefined,
      publicUrl: undefined,
      smtpUrl: undefined,
      mailFrom: undefined,
      trustProxy: false,
      allowNetworks: parseAllowNetworks('none'),
      maxRunningJobs: 2,
      backupDirectory: join(directory, 'backups'),
      backupEveryMs: null,
      tlsCert: undefined,
      tlsKey: undefined,
      settings: [],
      runAs: undefined,
      environment: new Map(),
    },
    mistakes: [],
    doubts: [],
    database: { store, schema: undefined, mistake: undefined, without: undefined },
    isServed,
    node: undefined,
    online: null,
    isFull: false,
    clock: () => nowMs,
  };
  const checks = CHECKS.filter((check) => check.name === name);
  const [finding] = (await examine(subject, checks)).findings;
  assert.ok(finding !== undefined);
  return finding;
}

function definitionOf(text: string): Definition {
  const parsed = parseYamlDefinition(text, { file: 'acme/people.yaml' });
  assert.ok('definition' in parsed);
  return parsed.definition;
}

async function apply(id: string, nextRunAt: number | null): Promise<void> {
  const definition = definitionOf("source: { type: command, command: ['true'] }\nschedule: { every: 1h }\n");
  await store.workflows.apply({ teamId, id, definition, hash: id, nextRunAt });
}

test('a schedule is overdue if no run has started for minutes, and only if a server is running', async () => {
  await apply('people', START + MINUTE_MS);
  nowMs = START + 3 * MINUTE_MS;
  assert.equal((await find('schedules', true)).status, 'ok');
  nowMs = START + 10 * MINUTE_MS;
  const late = await find('schedules', true);
  assert.equal(late.status, 'warning');
  assert.match(late.what, /1 overdue schedule, the oldest by 9 min: people/);
  assert.equal((await find('schedules', false)).status, 'skipped');
});

test('a job is stuck if it has been queued for long, but not if its workflow is paused', async () => {
  await apply('stuck', null);
  await apply('paused', null);
  for (const workflowId of ['stuck', 'paused']) {
    const origin = 'api';
    const { outcome } = await store.jobs.enqueue({
      teamId,
      workflowId,
      origin,
      idempotencyKey: null,
      trace: null,
    });
    assert.equal(outcome, 'queued');
  }
  await store.workflows.pause({ teamId, id: 'paused' });
  assert.equal((await find('jobs', true)).status, 'ok');
  nowMs += 20 * MINUTE_MS;
  const stuck = await find('jobs', true);
  assert.equal(stuck.status, 'warning');
  assert.match(stuck.what, /queued for more than 15 min: acme\/stuck$/);
  assert.equal((await find('jobs', false)).status, 'ok', 'they wait for a server');
});

test('deliveries that have waited for more than an hour are reported', async () => {
  await store.webhooks.subscribe({
    teamId,
    workflowId: null,
    url: 'https://hooks.example.com/x',
    events: ['*'],
    secret: 'sealed',
    limit: 10,
  });
  const { webhooks } = store;
  const [webhook] = await webhooks.list({ teamId, limit: 100 });
  await webhooks.test({ teamId, id: webhook?.id ?? '' });
  assert.equal((await find('deliveries', true)).status, 'ok');
  nowMs += 2 * 60 * MINUTE_MS;
  assert.match((await find('deliveries', true)).what, /Delivery backlog: 1, the oldest waiting 2 h/);
  assert.equal((await find('deliveries', true)).status, 'warning');
});

test('a stale workflow is reported until it is paused', async () => {
  assert.match((await find('freshness', false)).what, /No workflow sets `fresh`/);
  const definition = definitionOf("source: { type: command, command: ['true'] }\nexpect: { fresh: 2h }\n");
  await store.workflows.apply({ teamId, id: 'prices', definition, hash: 'prices', nextRunAt: null });
  assert.match((await find('freshness', false)).what, /1 workflow with `fresh`, none stale/);
  nowMs += 3 * 60 * MINUTE_MS;
  await store.freshness.markStale({ teamId, limit: 9 });
  const stale = await find('freshness', false);
  assert.equal(stale.status, 'warning');
  assert.match(stale.what, /has succeeded in time: acme\/prices by 1 h$/);
  await store.workflows.pause({ teamId, id: 'prices' });
  assert.equal((await find('freshness', false)).status, 'ok');
});
