/** When a wake looks, and that it never looks twice at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Wake } from './wake.ts';

/** A wake whose looks end when the test says so; `begun` resolves at each next one. */
function watched() {
  let looks = 0;
  let begun = Promise.withResolvers<void>();
  let ended = Promise.withResolvers<void>();
  const wake = new Wake({
    everyMs: 60_000,
    random: () => 0.5,
    look: () => {
      looks += 1;
      begun.resolve();
      return ended.promise;
    },
  });
  return {
    wake,
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

/** The timers of a wake do not keep a process alive; a test must. */
async function keepAlive<T>(promise: Promise<T>): Promise<T> {
  const timer = setTimeout(() => undefined, 60_000);
  return promise.finally(() => clearTimeout(timer));
}

test('looks at once when started, and starting twice changes nothing', async () => {
  const { wake, begun, end, looks } = watched();
  wake.start();
  wake.start();
  await begun();
  end();
  await wake.stop();
  assert.equal(looks(), 1);
});

test('any number of nudges during a look are one more look after it', async () => {
  const { wake, begun, end, looks } = watched();
  wake.start();
  await begun();
  for (let times = 0; times < 10; times += 1) wake.nudge();
  assert.equal(looks(), 1);
  end();
  await begun();
  assert.equal(looks(), 2);
  end();
  await wake.stop();
});

test('stop waits for the look under way, and nothing wakes it afterwards', async () => {
  const { wake, begun, end, looks } = watched();
  await wake.stop();
  wake.start();
  await begun();
  let stopped = false;
  const stopping = wake.stop().then(() => {
    stopped = true;
  });
  wake.nudge();
  await Promise.resolve();
  assert.equal(stopped, false);
  end();
  await stopping;
  wake.nudge();
  assert.equal(looks(), 1);
});
