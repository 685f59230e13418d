/**
 * How often an idle node wakes up, counted by the files that start its timers: each wake-up takes about 0.2 ms of
 * processor time, even if it does nothing. On SQLite, another thread looks four times per second for commits of other processes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startService } from '../support/service.ts';

const MINUTE_MS = 60_000;
const STEP_MS = 100;
/** Maximum number of wake-ups per minute. If you make a node wake up less often, lower its number. */
const MOST: Record<string, number> = {
  // Jobs, deliveries, schedules, replays and decisions every 5 s, leases every 5 and 10 s, and the chores.
  'src/std/chore.ts': 86,
  'src/store/sqlite/owner.ts': 60,
  'src/records/body-cache.ts': 1,
};
/** Their ticks depend on how busy this process is. They have tests of their own. */
const NOT_COUNTED = ['src/observe/event-loop.ts', 'src/std/idle-gc.ts'];

test('an idle node wakes up at most as often as known', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const fired = new Map<string, number>();
  for (const name of ['setTimeout', 'setInterval'] as const) {
    const start = globalThis[name] as (run: () => void, ms?: number) => NodeJS.Timeout;
    const counting = (run: (...values: unknown[]) => void, ms?: number, ...values: unknown[]) => {
      const file = starter();
      return start(() => {
        fired.set(file, (fired.get(file) ?? 0) + 1);
        run(...values);
      }, ms);
    };
    t.mock.method(globalThis, name, counting as never);
  }
  const service = await startService({
    workflows: { 'default/people.yaml': 'source: { type: command, command: [echo] }\n' },
    settings: { FLOWHOOK_DASHBOARD: 'off' },
    random: () => 0.5,
  });
  try {
    const pass = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += STEP_MS) {
        t.mock.timers.tick(STEP_MS);
        // Calls of the store run in order, so this one resolves after those that the timers have made.
        await service.store.keys.used({ keys: [] });
        await nextTurn();
      }
    };
    await pass(5_000);
    fired.clear();
    await pass(MINUTE_MS);
    for (const file of NOT_COUNTED) fired.delete(file);
    const problems = [...fired]
      .filter(([file, count]) => count > (MOST[file] ?? 0))
      .map(([file, count]) => `${file}: ${count} wake-ups per minute, maximum: ${MOST[file] ?? 0}`);
    assert.deepEqual(problems, []);
    // The test would prove nothing if the timers did not fire.
    assert.ok((fired.get('src/std/chore.ts') ?? 0) > 40);
  } finally {
    t.mock.timers.reset();
    await service.stop();
  }
});

/** The file that starts a timer. */
function starter(): string {
  const [, file] = /\/(src\/[\w./-]+\.ts):\d+/.exec(new Error().stack ?? '') ?? [];
  return file ?? 'another file';
}

function nextTurn(): Promise<void> {
  return new Promise((next) => setImmediate(next));
}
