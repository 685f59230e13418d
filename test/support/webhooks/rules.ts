/** For tests of rules: a real store with the test's own clock, a workflow whose records the test publishes, and engines. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { DEFAULT_RULE, type Rule } from '../../../src/model/rule.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import type { DecisionStepDone } from '../../../src/observe/observer.ts';
import { makeRunning, makeWorkflow, publish, stageRecords } from '../../../src/store/conformance/setup.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { RuleEngine } from '../../../src/webhooks/rules/rule-engine.ts';
import { givenDatabase, testDatabase } from '../test-database.ts';

const PUBLIC_URL = 'https://flowhook.test';

/** A record's id, and its fields. */
export type Records = Record<string, Record<string, unknown>>;

/** What was sent to a webhook: the part of a body that tests compare. */
export interface Sent {
  id: string;
  type: string;
  data: Record<string, unknown> & {
    differences?: { type: string; id: string; fields: unknown[] }[];
    matched?: number;
  };
}

type EngineOptions = Partial<ConstructorParameters<typeof RuleEngine>[0]>;

/** @param options.databaseUrl a PostgreSQL database. Default: the database of other tests */
export async function setUpRules(t: TestContext, options: { databaseUrl?: string } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-rules-'));
  const given = options.databaseUrl;
  const database = given === undefined ? await testDatabase(directory) : givenDatabase(given);
  let nowMs = Date.parse('2026-11-20T10:00:00Z');
  const stores: Store[] = [];
  const engines: RuleEngine[] = [];
  const open = async () => {
    const store = await openStore(database.url, {
      clock: () => nowMs,
      publicUrl: () => PUBLIC_URL,
      log: silentLogger,
      synchronous: 'OFF',
    });
    stores.push(store);
    return store;
  };
  const store = await open();
  t.after(async () => {
    await Promise.all(engines.map((one) => one.stop()));
    await Promise.all(stores.map((one) => one.close()));
    await database.drop();
    await rm(directory, { recursive: true });
  });
  const at = await makeWorkflow(store);
  const { teamId } = at;
  const done: DecisionStepDone[] = [];
  const engine = (changes: EngineOptions = {}) => {
    const made = new RuleEngine({
      store,
      databaseUrl: database.url,
      publicUrl: () => PUBLIC_URL,
      log: silentLogger,
      observer: { decisionStepDone: (one) => void done.push(one) },
      random: () => 0.5,
      nodeId: 'node-a',
      ...changes,
    });
    engines.push(made);
    return made;
  };
  let webhooks = 0;
  return {
    store,
    at,
    teamId,
    databaseUrl: database.url,
    /** Opens the database again, like another process. */
    another: open,
    engine,
    /** The steps that engines have reported. */
    done,
    now: () => nowMs,
    advance(ms: number) {
      nowMs += ms;
    },
    /** Subscribes a webhook with a rule to a workflow. */
    async subscribe(rule: Partial<Rule>, events = ['workflow_data_change'], of = at): Promise<string> {
      webhooks += 1;
      const made = await store.webhooks.subscribe({
        ...of,
        url: `https://receiver.test/${webhooks}`,
        events,
        secret: 'sealed',
        limit: 1_000,
        rule: { ...DEFAULT_RULE, ...rule },
      });
      if (!('webhook' in made)) throw new Error(made.outcome);
      return made.webhook.id;
    },
    /** Publishes these records as the next version, and removes all others. */
    async publish(records: Records, of = at): Promise<void> {
      const held = await makeRunning(store, of);
      const bodies = Object.entries(records).map(([id, fields]) => ({
        id,
        body: JSON.stringify({ id, ...fields }),
      }));
      const seqs = new Set<number>();
      for (let from = 0; from < bodies.length; from += 500) {
        for (const seq of await stageRecords(store, held, 'replace', bodies.slice(from, from + 500)))
          seqs.add(seq);
      }
      for (let afterSeq = 0; ; ) {
        const current = await store.records.currentSeqs({ held, afterSeq, rows: 1_000 });
        const gone = current.seqs.filter((seq) => !seqs.has(seq));
        for (let from = 0; from < gone.length; from += 500) {
          await store.records.remove({ held, seqs: gone.slice(from, from + 500) });
        }
        if (current.seqs.length === 0) break;
        afterSeq = Math.max(...current.seqs);
      }
      await publish(store, held, { fields: ['id'] });
    },
    /** What was sent to a webhook, oldest first. */
    async sent(webhookId: string, of = teamId): Promise<Sent[]> {
      const listed = await store.deliveries.list({ teamId: of, webhookId, limit: 100 });
      const found = await Promise.all(listed.map(({ id }) => store.deliveries.get({ teamId: of, id })));
      return found.map((one) => JSON.parse(one?.body ?? 'null') as Sent).reverse();
    },
    /** The decisions of a webhook, oldest first. */
    async decisions(webhookId: string) {
      const listed = await store.decisions.list({ teamId, webhookId, limit: 100 });
      return listed
        .reverse()
        .map(({ state, matched, examined, reason }) => ({ state, matched, examined, reason }));
    },
  };
}

/** The ids of the differences that a message lists, with their kinds. */
export function listed({ data }: Sent): string[] {
  return (data.differences ?? []).map(({ type, id }) => `${type} ${id}`);
}

const TEXT = 'x'.repeat(1_000);

/** Records `r0`, `r1` … with their number in `n`, and so long that a step examines about 2,000 of them. */
export function manyRecords(count: number): Records {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`r${n}`, { n, text: TEXT }]));
}
