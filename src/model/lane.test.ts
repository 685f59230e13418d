/** Concurrency limit and circuit breaker of lanes: examples, and invariants after random attempts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  isSlow,
  type LaneHealth,
  learn,
  MAX_LIMIT,
  PROBE_MS,
  pauseReason,
  restAfter,
  START_LIMIT,
  startHealth,
  type Verdict,
  verdictOf,
} from './lane.ts';

const DAY_MS = 24 * 3_600_000;

/** The state after these attempts in order. */
function after(
  from: LaneHealth,
  verdicts: readonly Verdict[],
  changes: { nowMs?: number; tookMs?: number } = {},
) {
  let health = from;
  for (const verdict of verdicts) {
    const probe = health.state === 'open';
    const { nowMs = 1_000_000, tookMs = 5 } = changes;
    health = learn(health, { verdict, tookMs, probe, restMs: 0, nowMs, random: 0.5 });
  }
  return health;
}

function times(count: number, verdict: Verdict): Verdict[] {
  return Array(count).fill(verdict);
}

test('what a response shows about its endpoint', () => {
  assert.equal(verdictOf({ outcome: 'ok', status: 204 }), 'well');
  assert.equal(verdictOf({ outcome: 'http', status: 404 }), 'refused');
  assert.equal(verdictOf({ outcome: 'http', status: 302 }), 'refused');
  assert.equal(verdictOf({ outcome: 'http', status: 429 }), 'busy');
  assert.equal(verdictOf({ outcome: 'http', status: 503 }), 'fault');
  assert.equal(verdictOf({ outcome: 'timeout', status: null }), 'fault');
});

test('the limit grows by one after `limit` fast successes, up to 16, but not after slow ones', () => {
  assert.equal(after(startHealth(null), times(3, 'well')).limit, START_LIMIT);
  assert.equal(after(startHealth(null), times(4, 'well')).limit, 5);
  assert.equal(after(startHealth(null), times(9, 'well')).limit, 6);
  assert.equal(after(startHealth(null), times(500, 'well')).limit, MAX_LIMIT);
  assert.equal(after(startHealth(null), times(500, 'well'), { tookMs: 1_001 }).limit, START_LIMIT);
});

test('the limit is halved after a fault or a 429, but not after other 4xx responses', () => {
  const grown = after(startHealth(null), times(500, 'well'));
  assert.equal(after(grown, ['fault']).limit, 8);
  assert.equal(after(grown, ['busy', 'busy']).limit, 4);
  assert.equal(after(grown, times(9, 'fault')).limit, 1);
  assert.equal(after(grown, ['refused']).limit, MAX_LIMIT);
});

test('ten faults in a row open the breaker, unless a 4xx response in between shows that the endpoint works', () => {
  assert.equal(after(startHealth(null), times(9, 'fault')).state, 'closed');
  assert.equal(after(startHealth(null), times(10, 'fault')).state, 'open');
  const between: Verdict[] = [...times(9, 'fault'), 'refused', ...times(9, 'fault')];
  assert.equal(after(startHealth(null), between.slice(0, 18)).state, 'closed');
});

test('the breaker opens if half of at least 20 attempts within a minute are faults', () => {
  const mixed: Verdict[] = Array.from({ length: 20 }, (_, number) => (number % 2 === 0 ? 'well' : 'fault'));
  assert.equal(after(startHealth(null), mixed.slice(0, 19)).state, 'closed');
  assert.equal(after(startHealth(null), mixed).state, 'open');
  const first = after(startHealth(null), mixed.slice(0, 10));
  assert.equal(after(first, mixed.slice(10), { nowMs: 1_060_000 }).state, 'closed');
});

test('probes after 30 s, 1, 2, 4, 8, 15, 15 minutes with jitter that is never early', () => {
  let health = after(startHealth(null), times(10, 'fault'));
  for (const [index, waitMs] of [...PROBE_MS, PROBE_MS.at(-1) as number].entries()) {
    const from = index === 0 ? 1_000_000 : health.restsUntil;
    if (index > 0) health = after(health, ['fault'], { nowMs: from });
    assert.equal(health.restsUntil - from, Math.round(waitMs * 1.1));
    assert.equal(health.state, 'open');
  }
});

test('attempts sent before the breaker opened neither close it nor extend the delay', () => {
  const open = after(startHealth(null), times(10, 'fault'));
  for (const verdict of ['well', 'fault', 'refused'] as const) {
    const late = { verdict, tookMs: 5, probe: false, restMs: 0, nowMs: 1_000_001, random: 0 };
    const { state, restsUntil, limit } = learn(open, late);
    assert.deepEqual([state, restsUntil, limit], ['open', open.restsUntil, 1]);
  }
});

test('recovers with 1, 2 and 4 concurrent requests, and any fault opens the breaker again for longer', () => {
  const open = after(startHealth(null), times(10, 'fault'));
  const seen: string[] = [];
  let health = open;
  for (let success = 1; success <= 8; success++) {
    health = after(health, ['well']);
    seen.push(`${health.state} ${health.limit}`);
  }
  const half = [1, 2, 2, 4, 4, 4, 4].map((limit) => `half_open ${limit}`);
  assert.deepEqual(seen, [...half, 'closed 5']);
  const again = after(after(open, ['well', 'well']), ['fault']);
  assert.deepEqual([again.state, again.openings], ['open', 2]);
  assert.equal(after(open, times(20, 'well')).state, 'closed');
  assert.equal(after(open, times(20, 'well')).openings, 0);
});

test('a lane is slow because of its average, after three failures, and until the breaker is closed', () => {
  assert.ok(!isSlow(after(startHealth(null), ['fault', 'refused'])));
  assert.ok(isSlow(after(startHealth(null), ['fault', 'refused', 'busy'])));
  assert.ok(isSlow(after(startHealth(null), times(20, 'well'), { tookMs: 1_500 })));
  assert.ok(!isSlow(after(startHealth(null), times(20, 'well'), { tookMs: 900 })));
  assert.ok(isSlow(startHealth(1)));
});

test('rests until Retry-After or the scheduled retry, whichever is later, for an hour at most', () => {
  assert.equal(restAfter(null, 5_000), 0);
  assert.equal(restAfter(0, 5_000), 5_000);
  assert.equal(restAfter(60_000, 5_000), 60_000);
  assert.equal(restAfter(DAY_MS, 5_000), 3_600_000);
  assert.equal(restAfter(1_000, DAY_MS), 3_600_000);
});

test('a webhook is paused with a reason after five days without success', () => {
  const first = after(startHealth(null), ['fault'], { nowMs: 1_000 });
  assert.equal(pauseReason(first, 1_000 + 6 * DAY_MS, 'HTTP 500'), null, 'two failures are too few');
  const failing = after(first, Array<Verdict>(9).fill('fault'), { nowMs: 1_000 });
  assert.equal(pauseReason(failing, 1_000 + 5 * DAY_MS - 1, 'HTTP 500'), null);
  assert.match(pauseReason(failing, 1_000 + 5 * DAY_MS, 'HTTP 500') ?? '', /five days, since 1970.*HTTP 500/);
  assert.equal(pauseReason(after(failing, ['well']), 99 * DAY_MS, null), null);
});

test('a minute or rest in the future is corrected after the clock was set back', () => {
  const open = after(startHealth(null), times(10, 'fault'), { nowMs: 90_000_000 });
  const probed = after(open, ['fault'], { nowMs: 1_000_000 });
  assert.equal(probed.restsUntil, 1_066_000, 'the second probe, with its jitter');
  const failing = after(startHealth(null), times(9, 'fault'), { nowMs: 90_000_000 });
  assert.deepEqual(after(failing, ['well']).minute, { since: 1_000_000, attempts: 1, faults: 0 });
});

const STEP = fc.record({
  verdict: fc.constantFrom<Verdict>('well', 'well', 'well', 'refused', 'busy', 'fault', 'fault'),
  tookMs: fc.integer({ min: 0, max: 30_000 }),
  passedMs: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 2_000_000 })),
  restMs: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3_600_000) }),
  stray: fc.boolean(),
  random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
});

test('invariants hold after any sequence of attempts', () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 300 }), fc.boolean(), (steps, failed) => {
      let health = startHealth(failed ? 1 : null);
      let nowMs = 1_000_000;
      let inRow = 0;
      for (const { passedMs, stray, ...step } of steps) {
        // A probe waits until it is due; attempts sent before the breaker opened may end at any time.
        const probe = health.state === 'open' && !stray;
        nowMs = probe ? Math.max(nowMs + passedMs, health.restsUntil) : nowMs + passedMs;
        const before = health;
        health = learn(before, { ...step, probe, nowMs });
        const isFault = step.verdict === 'fault';
        inRow = isFault ? inRow + 1 : 0;

        assert.ok(Number.isInteger(health.limit) && health.limit >= 1 && health.limit <= MAX_LIMIT);
        assert.ok(health.restsUntil >= before.restsUntil, 'a rest is never cut short');
        assert.equal(health.failingSince === null, step.verdict === 'well');
        if (before.failingSince !== null && step.verdict !== 'well') {
          assert.equal(health.failingSince, before.failingSince);
        }
        if (health.state === 'open') assert.equal(health.limit, 1);
        if (before.state === 'open' && !probe) assert.equal(health.state, 'open');
        if (before.state === 'open' && probe) assert.equal(health.state, isFault ? 'open' : 'half_open');
        if (health.state === 'closed') assert.ok(inRow < 10, 'ten faults in a row open it');
        const opens = health.openings > before.openings;
        if (opens) {
          const waitMs = PROBE_MS[Math.min(before.openings, PROBE_MS.length - 1)] ?? 0;
          assert.ok(isFault && health.restsUntil >= nowMs + waitMs, 'a probe is never early');
          const latest = Math.max(before.restsUntil, nowMs + step.restMs, Math.ceil(nowMs + waitMs * 1.2));
          assert.ok(health.restsUntil <= latest);
        }
        if (before.state === 'closed' && health.state === 'closed')
          assert.ok(health.limit <= before.limit + 1);
        if (before.state === 'half_open')
          assert.ok(health.limit <= Math.max(START_LIMIT + 1, before.limit * 2));
        assert.ok(health.averageMs !== null && health.averageMs <= 30_000);
      }
    }),
    { seed: 4, numRuns: 300 },
  );
});
