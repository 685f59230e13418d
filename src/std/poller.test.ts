/** When a poller looks and sleeps, and that its looks never overlap. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Poller } from './chore.ts';

/** A poller whose looks end when the test calls `end`. `started` resolves when the next look starts. */
function watched() {
  let looks = 0;
  let started = Promise.withResolvers<void>();
  let ended = Promise.withResolvers<void>();
  const poller = new Poller({
    everyMs: 60_000,
    random: () => 0.5,
    look: () => {
      looks += 1;
      started.resolve();
      return ended.promise;
    },
  });
  return {
    poller,
    looks: () => looks,
    async started() {
      await keepAlive(started.promise);
      started = Promise.withResolvers<void>();
    },
    end() {
      ended.resolve();
      ended = Promise.withResolvers<void>();
    },
  };
}

/** Keeps the process alive, because the timers of a poller do not. */
async function keepAlive<T>(promise: Promise<T>): Promise<T> {
  const timer = setTimeout(() => undefined, 60_000);
  return promise.finally(() => clearTimeout(timer));
}

test('looks immediately when started, and starting twice changes nothing', async () => {
  const { poller, started, end, looks } = watched();
  poller.start();
  poller.start();
  await started();
  end();
  await poller.stop();
  assert.equal(looks(), 1);
});

test('any number of nudges during a look cause one more look', async () => {
  const { poller, started, end, looks } = watched();
  poller.start();
  await started();
  for (let times = 0; times < 10; times += 1) poller.nudge();
  assert.equal(looks(), 1);
  end();
  await started();
  assert.equal(looks(), 2);
  end();
  await poller.stop();
});

test('stop waits for the current look, and nudges do nothing afterwards', async () => {
  const { poller, started, end, looks } = watched();
  await poller.stop();
  poller.start();
  await started();
  let stopped = false;
  const stopping = poller.stop().then(() => {
    stopped = true;
  });
  poller.nudge();
  await Promise.resolve();
  assert.equal(stopped, false);
  end();
  await stopping;
  poller.nudge();
  assert.equal(looks(), 1);
});

/**
 * A poller on a clock that the test moves. It looks every second, without jitter, and `quietMs` returns how long
 * nothing will be due.
 */
async function timed(t: TestContext, quietMs: () => Promise<number>) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let looks = 0;
  let elapsedMs = 0;
  const poller = new Poller({
    everyMs: 1_000,
    random: () => 0.5,
    look: async () => {
      looks += 1;
    },
    quietMs,
    elapsed: () => elapsedMs,
  });
  t.after(() => poller.stop());
  poller.start();
  /** Returns the number of looks within this time. */
  const looksIn = async (ms: number) => {
    const before = looks;
    for (let passed = 0; passed < ms; passed += 100) {
      elapsedMs += 100;
      t.mock.timers.tick(100);
      await nextTurn();
    }
    return looks - before;
  };
  t.mock.timers.tick(1);
  await nextTurn();
  return { poller, looksIn };
}

test('sleeps until something is due, but at most five seconds', async (t) => {
  let quietMs = Number.POSITIVE_INFINITY;
  const { looksIn } = await timed(t, async () => quietMs);
  assert.equal(await looksIn(60_000), 12);
  quietMs = 2_500;
  assert.equal(await looksIn(5_000), 1);
  assert.equal(await looksIn(5_000), 2);
});

test('polls while something is due or that is unknown', async (t) => {
  let quietMs = async () => 0;
  const { looksIn } = await timed(t, () => quietMs());
  assert.equal(await looksIn(10_000), 10);
  quietMs = () => Promise.reject(new Error('The database is unavailable'));
  assert.equal(await looksIn(10_000), 10);
});

test('a nudge ends a sleep immediately, and waking within the interval; then it polls until nothing happens', async (t) => {
  const { poller, looksIn } = await timed(t, async () => Number.POSITIVE_INFINITY);
  await looksIn(500);
  poller.nudge();
  assert.equal(await looksIn(200), 1);
  // The next look is a poll, after which the poller sleeps again.
  assert.equal(await looksIn(4_000), 1);
  poller.wake();
  poller.wake();
  assert.equal(await looksIn(900), 0);
  assert.equal(await looksIn(200), 1);
  for (let second = 0; second < 10; second += 1) {
    poller.wake();
    assert.equal(await looksIn(1_000), 1);
  }
  assert.equal(await looksIn(1_000), 1);
  assert.equal(await looksIn(4_000), 0);
});

test('waking a poller does not postpone a look that is about to happen', async (t) => {
  const { poller, looksIn } = await timed(t, async () => Number.POSITIVE_INFINITY);
  assert.equal(await looksIn(4_800), 0);
  poller.wake();
  assert.equal(await looksIn(200), 1);
});

test('a change during a look or a question prevents the sleep', async (t) => {
  let poller: Poller | undefined;
  const timedPoller = await timed(t, async () => {
    poller?.wake();
    return Number.POSITIVE_INFINITY;
  });
  await timedPoller.looksIn(4_900);
  poller = timedPoller.poller;
  await timedPoller.looksIn(200);
  assert.equal(await timedPoller.looksIn(10_000), 10);
});

function nextTurn(): Promise<void> {
  return new Promise((next) => setImmediate(next));
}
