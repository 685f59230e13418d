/** Webhooks that rest: for how long, and what is remembered of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuleRests } from './rule-rests.ts';

test('a webhook that fails again rests twice as long, and remembers no evaluation', () => {
  const rests = new RuleRests();
  rests.rest('team', 'wh_a', 0);
  assert.deepEqual(rests.of('team', 999), { except: ['wh_a'], slow: [] });
  assert.deepEqual(rests.of('team', 1_000), { except: [], slow: [] });
  rests.rest('team', 'wh_a', 1_000);
  assert.deepEqual(rests.of('team', 2_999).except, ['wh_a']);
  assert.deepEqual(rests.of('other', 2_999).except, []);
});
