/** The limits of checks: which values are ok, a warning or an error. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAllowNetworks } from '../net/address-policy.ts';
import { parseTrustedProxies } from '../net/host.ts';
import type { Result } from './check.ts';
import { backupAgeResult, databaseResult } from './database.ts';
import { fileSystemResult, memoryResult, roomResult } from './machine.ts';
import { takenResult } from './network.ts';
import { exposureResult, networksResult } from './settings.ts';
import { decisionsResult, deliveriesResult, webhookEventsResult, webhooksResult } from './work.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Returns the status, and asserts that a problem has a reason and a next step. */
function statusOf({ status, what, why, fix }: Result): string {
  assert.match(what, /^\S.*[^.]$/s);
  if (status === 'ok') assert.deepEqual([why, fix], [null, null]);
  else for (const sentence of [why, fix]) assert.match(sentence ?? '', /^\S.*[^.]$/s);
  return status;
}

test('memory: warns if simultaneous runs and the service need more than there is', () => {
  const isLimited = true;
  assert.equal(statusOf(memoryResult({ runsBytes: 1e9, limitBytes: 2e9, isLimited })), 'ok');
  const tight = memoryResult({ runsBytes: 4e9, limitBytes: 2e9, isLimited });
  assert.equal(statusOf(tight), 'warning');
  assert.match(tight.what, /4 GB in total.* of 2 GB \(limit of this container/);
});

test('port: a server that does not respond is not reported as another program', () => {
  const taken = { place: 'Port 8080', isServed: true, isSilent: false };
  assert.equal(statusOf(takenResult(taken)), 'error');
  assert.match(takenResult(taken).fix ?? '', /Stop that program/);
  const silent = takenResult({ ...taken, isSilent: true });
  assert.equal(statusOf(silent), 'error');
  assert.match(silent.what, /a program is listening, but did not respond within 5 s/);
  assert.match(silent.fix ?? '', /kill and restart it/);
  assert.match(
    takenResult({ ...taken, isServed: false, isSilent: true }).what,
    /is in use by another program/,
  );
});

test('disk space: for new data, for the next backup, and in inodes', () => {
  const place = { noun: 'backups', path: '/b', needed: 0, freeBytes: 5e9, freeFiles: 1e6 };
  assert.equal(statusOf(roomResult(place)), 'ok');
  assert.equal(statusOf(roomResult({ ...place, freeFiles: null })), 'ok');
  assert.equal(statusOf(roomResult({ ...place, needed: 6e9 })), 'warning');
  assert.match(roomResult({ ...place, needed: 6e9 }).why ?? '', /next backup needs up to 6 GB/);
  assert.equal(statusOf(roomResult({ ...place, freeBytes: 9e8 })), 'warning');
  assert.equal(statusOf(roomResult({ ...place, freeBytes: 5e7 })), 'error');
  assert.equal(statusOf(roomResult({ ...place, freeFiles: 3 })), 'error');
});

test('file systems: a local disk, not a network share or memory', () => {
  assert.equal(statusOf(fileSystemResult(0xef53, '/data')), 'ok');
  for (const type of [0x6969, 0xfe534d42, 0x01021997, 0x01021994, 0x794c7630]) {
    assert.equal(statusOf(fileSystemResult(type, '/data')), 'warning');
  }
});

test('exposure: TLS and a public URL if other machines can reach the service', () => {
  const closed = { host: '127.0.0.1', publicUrl: undefined, trustProxy: false, tlsCert: undefined } as const;
  const everybody = parseTrustedProxies('true') ?? false;
  const some = parseTrustedProxies('10.0.0.0/8') ?? false;
  const cases: [Parameters<typeof exposureResult>[0], string][] = [
    [closed, 'ok'],
    [{ ...closed, publicUrl: 'https://hooks.example.com' }, 'ok'],
    [{ ...closed, publicUrl: 'http://localhost:8080' }, 'ok'],
    [{ ...closed, publicUrl: 'http://hooks.example.com' }, 'warning'],
    [{ ...closed, host: '0.0.0.0' }, 'warning'],
    [{ ...closed, host: '0.0.0.0', publicUrl: 'https://hooks.example.com' }, 'ok'],
    [
      { ...closed, host: '0.0.0.0', publicUrl: 'https://hooks.example.com', trustProxy: everybody },
      'warning',
    ],
    [{ ...closed, host: '0.0.0.0', publicUrl: 'https://hooks.example.com', trustProxy: some }, 'ok'],
    [{ ...closed, host: '0.0.0.0', trustProxy: some }, 'warning'],
    [{ ...closed, host: '0.0.0.0', tlsCert: '/c.pem' }, 'warning'],
  ];
  for (const [settings, expected] of cases) {
    assert.equal(statusOf(exposureResult(settings)), expected, JSON.stringify(settings));
  }
});

test('networks: no loopback addresses if other machines can reach the service', () => {
  const networks = (host: string, allowed: string) =>
    statusOf(networksResult({ host, publicUrl: undefined, allowNetworks: parseAllowNetworks(allowed) }));
  assert.equal(networks('127.0.0.1', 'loopback,private'), 'ok');
  assert.equal(networks('0.0.0.0', 'private'), 'ok');
  assert.equal(networks('0.0.0.0', 'loopback,private'), 'warning');
});

test('database: warns about long response times', () => {
  const near = { kind: 'postgres', version: '18', bytes: 1e6, medianMs: 0.4 } as const;
  assert.equal(statusOf(databaseResult(near)), 'ok');
  assert.equal(statusOf(databaseResult({ ...near, medianMs: 80 })), 'warning');
});

test('backups: at most as old as the interval, or a week without a schedule', () => {
  const fresh = { everyMs: null, ageMs: null, sinceMs: DAY_MS };
  assert.equal(backupAgeResult(fresh).status, 'skipped', 'the data is new');
  assert.equal(
    backupAgeResult({ ...fresh, everyMs: DAY_MS }).status,
    'skipped',
    'the first backup is not due yet',
  );
  assert.equal(statusOf(backupAgeResult({ ...fresh, sinceMs: 9 * DAY_MS })), 'warning');
  assert.equal(statusOf(backupAgeResult({ ...fresh, sinceMs: 9 * DAY_MS, ageMs: DAY_MS })), 'ok');
  const daily = { everyMs: DAY_MS, ageMs: DAY_MS + HOUR_MS / 2, sinceMs: 9 * DAY_MS };
  assert.equal(statusOf(backupAgeResult(daily)), 'ok', 'a backup is being made');
  assert.equal(statusOf(backupAgeResult({ ...daily, ageMs: 2 * DAY_MS })), 'warning');
});

test('webhooks: warns about webhooks that have failed for an hour, or were paused while failing', () => {
  const now = 100 * HOUR_MS;
  const one = {
    id: 'wh_1',
    url: 'https://a.example/x',
    state: 'active',
    failingSince: null,
    pausedReason: null,
  } as const;
  const status = (webhook: Partial<Parameters<typeof webhooksResult>[0][number]>, openCircuits = 0) =>
    statusOf(webhooksResult([{ ...one, ...webhook }], { now, openCircuits }));
  assert.equal(status({}), 'ok');
  assert.equal(status({ failingSince: now - HOUR_MS / 2 }), 'ok');
  assert.equal(status({ failingSince: now - 2 * HOUR_MS }), 'warning');
  assert.equal(status({ state: 'paused' }), 'ok', 'on purpose');
  assert.equal(status({ state: 'paused', failingSince: 0 }), 'warning');
  assert.equal(status({}, 3), 'warning');
});

test('deliveries: warns if a delivery has waited for more than an hour', () => {
  assert.equal(statusOf(deliveriesResult({ waiting: 0, complete: true, oldestMs: 0 })), 'ok');
  assert.equal(statusOf(deliveriesResult({ waiting: 9, complete: true, oldestMs: 60_000 })), 'ok');
  assert.equal(
    statusOf(deliveriesResult({ waiting: 10_000, complete: false, oldestMs: 2 * HOUR_MS })),
    'warning',
  );
});

test('webhook events: warns about unknown names, but not about aliases', () => {
  assert.equal(statusOf(webhookEventsResult([{ id: 'wh_1', events: ['job.failed', '*'] }])), 'ok');
  const wrong = webhookEventsResult([
    { id: 'wh_1', events: ['*'] },
    { id: 'wh_2', events: ['job.failed', 'job.finishd'] },
    { id: 'wh_3', events: ['hush'] },
  ]);
  assert.equal(statusOf(wrong), 'warning');
  assert.match(wrong.what, /wh_2 \(probably job\.finished\), wh_3$/);
});

test('events that wait for a filter, and filters that failed, are reported', () => {
  assert.equal(statusOf(decisionsResult({ oldestMs: 60_000, mistaken: [] })), 'ok');
  const late = decisionsResult({ oldestMs: 10 * 60_000, mistaken: [] });
  assert.match(late.what, /waiting for 10 min for the filter/);
  assert.match(decisionsResult({ oldestMs: 0, mistaken: ['wh_1'] }).what, /failed .*: wh_1$/);
});
