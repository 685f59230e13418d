/** Which teams are refused under overload. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { INITIAL_LIMIT, MIN_LIMIT, placesFor } from '../../model/load-limit.ts';
import { silentLogger } from '../../observe/log.ts';
import { InFlight, NEW_CALLERS, UNKNOWN_TEAM } from './requests.ts';

/** Responses that are never sent. */
function answers(count: number): ServerResponse[] {
  return Array.from({ length: count }, () => ({ headersSent: false }) as ServerResponse);
}

function full(team: string, waitMs = () => 0) {
  const inFlight = new InFlight({ waitMs, log: silentLogger, usedMemory: () => 0 });
  let admitted = 0;
  for (const answer of answers(2 * INITIAL_LIMIT)) {
    if (!inFlight.admits('brief', team)) break;
    inFlight.add(answer, 'brief', team);
    admitted += 1;
  }
  return { inFlight, admitted };
}

test('a single team may use the whole limit; beyond it, only that team is refused', () => {
  const { inFlight, admitted } = full('flood');
  assert.equal(admitted, INITIAL_LIMIT);
  for (const weight of ['brief', 'whole', 'long'] as const) {
    assert.equal(inFlight.admits(weight, 'flood'), false, weight);
  }
  assert.ok(inFlight.admits('brief', 'other'));
  assert.ok(inFlight.admits('long', 'other'), 'pushes of others are not refused because of a flood');
});

test('accepts another team even if the limit was lowered below what the flood uses', () => {
  const { inFlight } = full('flood', () => 1_000);
  for (let look = 0; look < 20; look += 1) inFlight.look();
  assert.equal(inFlight.state.limit, MIN_LIMIT);
  assert.equal(inFlight.working, INITIAL_LIMIT);
  assert.ok(inFlight.admits('brief', 'other'));
});

test('a request counts for its team once the team is known, and no longer for new callers', () => {
  const { inFlight } = full(UNKNOWN_TEAM);
  assert.equal(inFlight.admits('brief', UNKNOWN_TEAM), false);
  // Other teams take all places except the last.
  for (const [n, answer] of answers(INITIAL_LIMIT).entries()) {
    if (inFlight.working === placesFor(INITIAL_LIMIT) - 1) break;
    inFlight.add(answer, 'brief', `team ${n}`);
  }
  const [answer] = answers(1) as [ServerResponse];
  inFlight.add(answer, 'brief', NEW_CALLERS);
  assert.equal(inFlight.admits('brief', 'a'), false);
  assert.ok(inFlight.count(answer, 'brief', 'a'));
  assert.deepEqual([inFlight.workingOf('a'), inFlight.workingOf(NEW_CALLERS)], [1, 0]);
  assert.ok(inFlight.count(answer, 'brief', 'a'), 'counting twice is harmless');
  assert.equal(inFlight.workingOf('a'), 1);
});

test('a request that only waits does not count as work', () => {
  const inFlight = new InFlight({ waitMs: () => 0, log: silentLogger });
  const [answer] = answers(1) as [ServerResponse];
  inFlight.add(answer, 'brief', 'a');
  inFlight.rest(answer);
  assert.equal(inFlight.working, 0);
  inFlight.recount();
  assert.deepEqual([inFlight.working, inFlight.size], [0, 1]);
});

test('the first request after a rest looks at the load again', (t) => {
  let used = 0;
  let waitMs = 1_000;
  const inFlight = new InFlight({ waitMs: () => waitMs, log: silentLogger, usedMemory: () => used });
  t.after(() => inFlight.stop());
  const [first, second] = answers(2) as [ServerResponse, ServerResponse];
  inFlight.look();
  inFlight.start();
  inFlight.add(first, 'brief', 'a');
  assert.equal(
    inFlight.state.limit,
    INITIAL_LIMIT,
    'a wait before the rest and one after it are not in a row',
  );
  inFlight.look();
  assert.ok(inFlight.state.limit < INITIAL_LIMIT);

  inFlight.stop();
  [used, waitMs] = [0.95, 0];
  inFlight.start();
  inFlight.add(second, 'brief', 'a');
  assert.ok(inFlight.state.isShortOfMemory);
});

test('continues if the memory size cannot be read, for example because too many files are open', (t) => {
  t.mock.method(process.memoryUsage, 'rss', () => {
    throw new Error('EMFILE: too many open files');
  });
  const inFlight = new InFlight({ waitMs: () => 0, log: silentLogger });
  inFlight.look();
  assert.equal(inFlight.state.isShortOfMemory, false);
});
