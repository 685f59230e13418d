/** Settling in batches, even while the store is unavailable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../model/error.ts';
import { silentLogger } from '../observe/log.ts';
import type { Settlement } from '../store/operations/settle.ts';
import { SettlementWriter } from './settlement-writer.ts';

function settlement(deliveryId: string, webhookId = 'wh_1'): Settlement {
  return {
    teamId: 'team_1',
    deliveryId,
    webhookId,
    epoch: 0,
    rewrites: 0,
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

interface Timing {
  gatherMs?: number;
  inFlight?: () => number;
  sharesCommit?: () => boolean;
  elapsed?: () => number;
}

/** A settler whose store does what `write` says with each batch of delivery ids. */
function settling(
  write: (ids: string[]) => Promise<void>,
  { gatherMs, inFlight = () => 0, sharesCommit = () => false, elapsed = () => 0 }: Timing = {},
) {
  const settled: string[] = [];
  const givenUp: string[] = [];
  const settler = new SettlementWriter({
    deliveries: { settle: ({ settlements }) => write(settlements.map((one) => one.deliveryId)) },
    log: silentLogger,
    random: () => 0,
    inFlight,
    sharesCommit,
    elapsed,
    ...(gatherMs === undefined ? {} : { gatherMs }),
    onSettled: (one) => settled.push(one.deliveryId),
    onGivenUp: (one) => givenUp.push(one.deliveryId),
  });
  return { settler, settled, givenUp };
}

/** A settler whose writes end when the test calls `goOn`. */
function held({ inFlight = 0, sharesCommit = false } = {}) {
  let nowMs = 0;
  const batches: number[] = [];
  let written = Promise.withResolvers<void>();
  const hold = async (ids: string[]) => {
    batches.push(ids.length);
    await written.promise;
  };
  const { settler, settled } = settling(hold, {
    gatherMs: 60_000,
    inFlight: () => inFlight,
    sharesCommit: () => sharesCommit,
    elapsed: () => nowMs,
  });
  return {
    settler,
    settled,
    batches,
    pass(ms: number) {
      nowMs += ms;
    },
    async add(count: number, isAwaited = false) {
      for (let number = 0; number < count; number += 1) settler.add(settlement(`dlv_${number}`), isAwaited);
      await new Promise((go) => setImmediate(go));
    },
    async goOn() {
      const before = written;
      written = Promise.withResolvers();
      before.resolve();
      await new Promise((go) => setImmediate(go));
    },
  };
}

test('writes settlements immediately, at most 256 in a batch and two batches at a time', async () => {
  const { settler, settled, batches, add, goOn } = held();
  await add(600);
  assert.equal(settler.size, 600);
  assert.deepEqual(batches, [256, 256]);
  await goOn();
  assert.deepEqual(batches, [256, 256, 88]);
  await goOn();
  assert.equal(settled.length, 600);
  assert.equal(settler.size, 0);
});

test('waits for a larger batch while another is written, unless a lane is waiting for a settlement', async () => {
  const { settler, batches, add, goOn } = held();
  await add(1);
  await add(10);
  assert.deepEqual(batches, [1], 'ten settlements are too few for a batch');
  await add(54);
  assert.deepEqual(batches, [1, 64]);
  await goOn();
  await add(10);
  await add(10);
  await add(1, true);
  assert.deepEqual(batches, [1, 64, 10, 11]);
  await goOn();
  await settler.idle();
});

test('with many requests in flight, waits for as many settlements', async () => {
  const { settler, batches, add, goOn } = held({ inFlight: 100 });
  await add(1);
  await add(99);
  assert.deepEqual(batches, [1], '99 settlements are too few for a batch');
  await add(1);
  assert.deepEqual(batches, [1, 100]);
  await goOn();
  await settler.idle();
});

test('writes batches immediately, any number at a time, while they share commits with other calls', async () => {
  const { settler, settled, batches, pass, add, goOn } = held({ sharesCommit: true });
  for (let number = 0; number < 4; number += 1) {
    pass(1);
    await add(3);
  }
  assert.deepEqual(batches, [3, 3, 3, 3]);
  await goOn();
  await settler.idle();
  assert.equal(settled.length, 12);
});

test('writes changes of a webhook in order, even while the store is unavailable', async () => {
  const written: string[][] = [];
  let failures = 4;
  const { settler, settled } = settling(async (ids) => {
    failures -= 1;
    if (failures >= 0) throw new Problem('database_unavailable');
    written.push(ids);
  });
  for (const id of ['a', 'b', 'c']) {
    settler.add({ ...settlement(id), health: id === 'b' ? 'failing' : 'well' });
    await new Promise((go) => setImmediate(go));
  }
  await settler.idle();
  assert.deepEqual(written, [['a'], ['b', 'c']]);
  assert.deepEqual(settled, ['a', 'b', 'c']);
});

test('one settlement that cannot be written does not block the others', async () => {
  const { settler, settled, givenUp } = settling(async (ids) => {
    if (ids.includes('bad')) throw new Error('constraint failed');
  });
  for (const id of ['a', 'b', 'bad', 'c']) settler.add(settlement(id));
  await settler.idle();
  assert.deepEqual([settled, givenUp], [['a', 'b', 'c'], ['bad']]);
});

test('gives up after a few tries once closed, and works again afterwards', async () => {
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

test('a locked row delays only its own webhook, and is written when it is unlocked', async () => {
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

test('gives up a locked row a few tries after being closed', async () => {
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
