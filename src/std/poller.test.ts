/** When a poller looks, and that it never looks twice at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Poller } from './chore.ts';

/** A poller whose looks end when the test says so; `begun` resolves at each next one. */
function watched() {
  let looks = 0;
  let begun = Promise.withResolvers<void>();
  let ended = Promise.withResolvers<void>();
  const poller = new Poller({
    everyMs: 60_000,
    random: () => 0.5,
    look: () => {
      looks += 1;
      begun.resolve();
      return ended.promise;
    },
  });
  return {
    poller,
    looks: () => looks,
    async begun() {
      await keepAlive(begun.promise);
      begun = Promise.withResolvers<void>();
    },
    end() {
      ended.resolve();
      ended = Promise.withResolvers<void>();
    },
  };
}

/** The timers of a poller do not keep a process alive; a test must. */
async function keepAlive<T>(promise: Promise<T>): Promise<T> {
  const timer = setTimeout(() => undefined, 60_000);
  return promise.finally(() => clearTimeout(timer));
}

test('looks at once when started, and starting twice changes nothing', async () => {
  const { poller, begun, end, looks } = watched();
  poller.start();
  poller.start();
  await begun();
  end();
  await poller.stop();
  assert.equal(looks(), 1);
});

test('any number of nudges during a look are one more look after it', async () => {
  const { poller, begun, end, looks } = watched();
  poller.start();
  await begun();
  for (let times = 0; times < 10; times += 1) poller.nudge();
  assert.equal(looks(), 1);
  end();
  await begun();
  assert.equal(looks(), 2);
  end();
  await poller.stop();
});

test('stop waits for the look under way, and no nudge starts it afterwards', async () => {
  const { poller, begun, end, looks } = watched();
  await poller.stop();
  poller.start();
  await begun();
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
