/** Settling in batches, also while the store is away. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../model/error.ts';
import { silentLogger } from '../observe/log.ts';
import type { Settlement } from '../store/webhook-operations.ts';
import { Settler } from './settler.ts';

function settlement(deliveryId: string, webhookId = 'wh_1'): Settlement {
  return {
    teamId: 'team_1',
    deliveryId,
    webhookId,
    epoch: 0,
    attempt: 1,
    log: {
      startedAt: 0,
      durationMs: 1,
      outcome: 'ok',
      status: 200,
      error: null,
      response: '',
      details: null,
    },
    next: { state: 'delivered' },
    health: null,
  };
}

/** A settler whose store does what `write` says with each batch of delivery ids. */
function settling(write: (ids: string[]) => Promise<void>) {
  const settled: string[] = [];
  const givenUp: string[] = [];
  const settler = new Settler({
    deliveries: { settle: ({ settlements }) => write(settlements.map((one) => one.deliveryId)) },
    log: silentLogger,
    random: () => 0,
    onSettled: (one) => settled.push(one.deliveryId),
    onGivenUp: (one) => givenUp.push(one.deliveryId),
  });
  return { settler, settled, givenUp };
}

test('writes at once what is there, and together what came meanwhile, 256 at most', async () => {
  const batches: number[] = [];
  const first = Promise.withResolvers<void>();
  const { settler, settled } = settling(async (ids) => {
    batches.push(ids.length);
    if (batches.length === 1) await first.promise;
  });
  for (let number = 0; number < 300; number += 1) settler.add(settlement(`dlv_${number}`));
  assert.equal(settler.size, 300);
  first.resolve();
  await settler.idle();
  assert.deepEqual(batches, [1, 256, 43]);
  assert.equal(settled.length, 300);
  assert.equal(settler.size, 0);
});

test('keeps what it has while the store is away, in order', async () => {
  const written: string[][] = [];
  let failures = 4;
  const { settler, settled } = settling(async (ids) => {
    failures -= 1;
    if (failures >= 0) throw new Problem('database_unavailable');
    written.push(ids);
  });
  for (const id of ['a', 'b', 'c']) settler.add(settlement(id));
  await settler.idle();
  assert.deepEqual(written, [['a'], ['b', 'c']]);
  assert.deepEqual(settled, ['a', 'b', 'c']);
});

test('one settlement that cannot be written does not keep back the others', async () => {
  const { settler, settled, givenUp } = settling(async (ids) => {
    if (ids.includes('bad')) throw new Error('constraint failed');
  });
  for (const id of ['a', 'b', 'bad', 'c']) settler.add(settlement(id));
  await settler.idle();
  assert.deepEqual([settled, givenUp], [['a', 'b', 'c'], ['bad']]);
});

test('gives up after a few tries once it is closed, and works again afterwards', async () => {
  let away = true;
  let tries = 0;
  const failed = Promise.withResolvers<void>();
  const { settler, settled, givenUp } = settling(async () => {
    tries += 1;
    if (tries === 2) failed.resolve();
    if (away) throw new Problem('database_unavailable');
  });
  settler.add(settlement('a'));
  await failed.promise;
  await settler.close();
  assert.deepEqual([settled, givenUp], [[], ['a']]);
  assert.ok(tries >= 3 && tries <= 5);
  away = false;
  settler.add(settlement('b'));
  await settler.idle();
  assert.deepEqual(settled, ['b']);
});

test('what something else has locked keeps back its own webhook and no other one, and is written when it is free', async () => {
  const freed = Promise.withResolvers<void>();
  let isLocked = true;
  const { settler, settled } = settling(async (ids) => {
    if (isLocked && ids.some((id) => id.startsWith('locked'))) throw new Problem('database_busy');
    if (ids.includes('last')) freed.resolve();
  });
  settler.add(settlement('first'));
  for (const id of ['a', 'locked-1', 'b']) settler.add(settlement(id, `wh_${id}`));
  settler.add(settlement('locked-2', 'wh_locked-1'));
  settler.add(settlement('last', 'wh_last'));
  await freed.promise;
  isLocked = false;
  await settler.idle();
  assert.deepEqual(settled.slice(-2), ['locked-1', 'locked-2']);
  assert.deepEqual(settled.toSorted(), ['a', 'b', 'first', 'last', 'locked-1', 'locked-2']);
  assert.equal(settler.size, 0);
});

test('gives up what stays locked a few tries after it is closed', async () => {
  const tried = Promise.withResolvers<void>();
  const { settler, settled, givenUp } = settling(async (ids) => {
    tried.resolve();
    if (ids.includes('locked')) throw new Problem('database_busy');
  });
  settler.add(settlement('locked', 'wh_locked'));
  settler.add(settlement('a'));
  await tried.promise;
  await settler.close();
  assert.deepEqual([settled, givenUp], [['a'], ['locked']]);
});
