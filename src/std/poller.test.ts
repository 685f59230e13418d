/** When a poller looks, and that its looks never overlap. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
