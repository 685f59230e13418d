/**
 * Random histories of records, filters, crashes, cooldowns and digests: what arrives at webhooks must be what a short model
 * says. `RULE_RUNS=10000 node --test test/rules/model.test.ts` is the long form. Each history takes 16 days of the clock, and
 * schedules end with the year 3000, so 20000 is the maximum. A failure prints a seed and a path: `RULE_SEED=… RULE_PATH=…`
 * repeats it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import { RuleEngine } from '../../src/webhooks/rules/rule-engine.ts';
import { history } from '../support/rules/histories.ts';
import { checkHistory, type Ground, mortal } from '../support/rules/world.ts';
import { onPostgres, testDatabase } from '../support/test-database.ts';

const RUNS = Number(process.env.RULE_RUNS ?? (onPostgres() ? 40 : 200));
/** Databases that are used at the same time, because a history on PostgreSQL mostly waits. */
const DATABASES = onPostgres() ? 6 : 1;
const PUBLIC_URL = 'https://flowhook.test';
const { RULE_SEED, RULE_PATH } = process.env;

test(`sends what a model says in ${RUNS} random histories of records, filters, crashes, cooldowns and digests`, async (t) => {
  const isRepeated = RULE_SEED !== undefined;
  const databases = isRepeated ? 1 : DATABASES;
  await Promise.all(
    Array.from({ length: databases }, async () => {
      const ground = await makeGround(t);
      await fc.assert(
        fc.asyncProperty(history, (one) => checkHistory(ground, one)),
        {
          numRuns: Math.ceil(RUNS / databases),
          ...(isRepeated ? { seed: Number(RULE_SEED) } : {}),
          ...(RULE_PATH === undefined ? {} : { path: RULE_PATH }),
        },
      );
    }),
  );
});

async function makeGround(t: TestContext): Promise<Ground> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-rules-'));
  const database = await testDatabase(directory);
  let nowMs = Date.UTC(2026, 0, 1);
  let latestMs = nowMs;
  const clock = {
    now: () => nowMs,
    latest: () => latestMs,
    advance(ms: number) {
      nowMs += ms;
      latestMs = Math.max(latestMs, nowMs);
    },
  };
  const store = await openStore(database.url, {
    clock: clock.now,
    publicUrl: () => PUBLIC_URL,
    log: silentLogger,
    synchronous: 'OFF',
    own: true,
  });
  const dying = mortal(store);
  const engines = [store, dying.store].map(
    (store) =>
      new RuleEngine({
        store,
        databaseUrl: database.url,
        publicUrl: () => PUBLIC_URL,
        log: silentLogger,
        observer: {},
        random: () => 0.5,
        nodeId: 'node-a',
      }),
  ) as [RuleEngine, RuleEngine];
  t.after(async () => {
    await Promise.all(engines.map((engine) => engine.stop()));
    await store.close();
    await database.drop();
    await rm(directory, { recursive: true, force: true });
  });
  return { store, clock, engines, mortal: dying };
}
