/** Warnings about keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiKey, EXPIRES_SOON_MS, keyConcern, UNUSED_MS } from './team.ts';

const DAY_MS = 86_400_000;
const key: ApiKey = {
  id: 'key_1',
  teamId: 'team_1',
  name: '',
  hash: '',
  prefix: '',
  scopes: [],
  createdAt: 0,
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  watchedFrom: 0,
};

test('a key is unused after 90 days without use, counted while its use was recorded', () => {
  assert.equal(keyConcern(key, UNUSED_MS - 1), null);
  assert.equal(keyConcern(key, UNUSED_MS), 'unused');
  assert.equal(keyConcern({ ...key, lastUsedAt: 1 }, UNUSED_MS), null);
  // The key is older than the recording of its use.
  assert.equal(keyConcern({ ...key, watchedFrom: DAY_MS }, UNUSED_MS), null);
});

test('a key expires soon within 14 days, or in the last fifth of a shorter lifetime', () => {
  const year = { ...key, expiresAt: 365 * DAY_MS, lastUsedAt: 360 * DAY_MS };
  assert.equal(keyConcern(year, year.expiresAt - EXPIRES_SOON_MS - 1), null);
  assert.equal(keyConcern(year, year.expiresAt - EXPIRES_SOON_MS), 'expires_soon');
  const hour = { ...key, expiresAt: 3_600_000 };
  assert.equal(keyConcern(hour, 0), null);
  assert.equal(keyConcern(hour, 3_000_000), 'expires_soon');
});

test('there is no warning about a revoked or expired key', () => {
  assert.equal(keyConcern({ ...key, revokedAt: 1 }, UNUSED_MS), null);
  assert.equal(keyConcern({ ...key, expiresAt: DAY_MS }, DAY_MS), null);
});
