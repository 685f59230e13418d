/** Random histories: webhooks with rules, and steps of publishers, people, clocks and the engine that decides. */
import fc from 'fast-check';
import { filter, type Item, PRICES } from './filters.ts';
import type { Rule } from './model.ts';

export const WORKFLOWS = ['w0', 'w1'] as const;
const MINUTE_MS = 60_000;

export type Step =
  /** A run of a workflow. `replaces`: records that it does not contain are removed. */
  | { kind: 'publish'; workflow: number; replaces: boolean; items: Item[] }
  | { kind: 'wait'; ms: number }
  | { kind: 'decide' }
  /** The node dies at a store call of the engine, and the next one decides after `ms`. */
  | { kind: 'crash'; call: number; isCommitted: boolean; ms: number }
  /** Two nodes decide at the same time. */
  | { kind: 'race' }
  | { kind: 'change'; webhook: number; rule: Rule | null }
  | { kind: 'pause' | 'resume'; webhook: number }
  | { kind: 'send' }
  /** Deletes all versions that nothing needs. */
  | { kind: 'prune' };

export interface History {
  webhooks: { workflow: number | null; events: string[]; rule: Rule | null }[];
  steps: Step[];
}

export const item: fc.Arbitrary<Item> = fc.record(
  {
    id: fc.constantFrom(...'abcd'),
    price: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom<Item['price']>(...PRICES) },
      { weight: 1, arbitrary: fc.constantFrom<Item['price']>(null, '50') },
    ),
    stock: fc.constantFrom(0, 1, 40, 50),
  },
  { requiredKeys: ['id'] },
);

const cooldown = fc.constantFrom(null, null, MINUTE_MS, 3 * MINUTE_MS, 30 * MINUTE_MS);

const digest = fc.constantFrom<Rule['digest']>(
  null,
  null,
  { everyMs: MINUTE_MS },
  { everyMs: 10 * MINUTE_MS },
  { everyMs: 7 * 24 * 60 * MINUTE_MS },
  { atMs: 15 * MINUTE_MS },
);

const rule: fc.Arbitrary<Rule> = fc
  .record({
    filter,
    firstVersion: fc.constantFrom(null, null, 'send' as const, 'skip' as const),
    cooldownMs: cooldown,
    digest,
  })
  .map(({ filter, firstVersion, cooldownMs, digest }) =>
    filter.readsRecord
      ? {
          ...{ filter, firstVersion, skipsFirst: firstVersion !== 'send', digest },
          cooldownMs: digest === null ? cooldownMs : null,
        }
      : { filter, firstVersion: null, skipsFirst: false, cooldownMs: null, digest },
  );
const anyRule = fc.option(rule, { freq: 8 });

const webhook = fc.nat({ max: 2 });
const kind = <Kind extends string>(name: Kind) => fc.constant(name);
const forward = fc.constantFrom(1_000, 30_000, MINUTE_MS, 5 * MINUTE_MS, 40 * MINUTE_MS);
const back = fc.constantFrom(-30_000, -10 * MINUTE_MS);
const ms = fc.oneof({ weight: 5, arbitrary: forward }, { weight: 2, arbitrary: back });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: kind('publish'),
      workflow: fc.nat({ max: WORKFLOWS.length - 1 }),
      replaces: fc.boolean(),
      items: fc.array(item, { maxLength: 4 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: kind('wait'), ms }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('decide') }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: kind('crash'),
      call: fc.nat({ max: 8 }),
      isCommitted: fc.boolean(),
      // The dead node may have ended cooldowns at its time. If the clock were set back now, the model would not know.
      ms: fc.oneof(fc.constant(0), forward),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind('race') }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('change'), webhook, rule: anyRule }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('pause' as const, 'resume' as const), webhook }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind('send') }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('prune') }) },
);

export const history: fc.Arbitrary<History> = fc.record({
  webhooks: fc.array(
    fc.record({
      workflow: fc.constantFrom(null, 0, 0, 1),
      events: fc.constantFrom(['workflow_data_change'], ['workflow_data_change'], ['*']),
      rule: anyRule,
    }),
    { minLength: 1, maxLength: 3 },
  ),
  steps: fc.array(step, { minLength: 3, maxLength: 16, size: 'max' }),
});
