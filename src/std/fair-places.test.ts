/** How teams share places, and which team is served next. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairPlaces, NoPlaceError, Shares } from './fair-share.ts';

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Takes as many places as the team may have. */
function fill(shares: Shares, team: string, places: number): number {
  let taken = 0;
  for (; shares.admits(team, places); taken += 1) shares.add(team);
  return taken;
}

test('a single team gets three quarters, and further teams always find free places', () => {
  const shares = new Shares();
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((team) => fill(shares, team, 512)),
    [384, 96, 24, 6],
  );
  assert.equal(shares.all, 510);
  for (let n = 0; n < 384; n += 1) shares.remove('a');
  assert.ok(fill(shares, 'd', 512) > 200, 'other teams may take released places');
});

test('even with few places, one remains for a team that has none', () => {
  for (const [places, alone] of [
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 3],
    [10, 7],
  ] as const) {
    const shares = new Shares();
    assert.equal(fill(shares, 'a', places), alone);
    if (places > 1) assert.ok(shares.admits('b', places));
  }
});

test('a team’s only call waits for one turn, however many calls of another team wait', async () => {
  const places = new FairPlaces({ places: 1 });
  const order: string[] = [];
  const work = async (team: string) => {
    const leave = await places.take(team);
    order.push(team);
    await nextTurn();
    leave();
  };
  const flood = Array.from({ length: 10 }, () => work('flood'));
  await nextTurn();
  await Promise.all([...flood, work('small'), work('other')]);
  assert.deepEqual(order.slice(0, 4), ['flood', 'small', 'other', 'flood']);
  assert.equal(order.length, 12);
});

test('a team with constant calls takes turns with the other teams', async () => {
  const places = new FairPlaces({ places: 2 });
  const served = { flood: 0, small: 0 };
  const call = async (team: keyof typeof served) => {
    await places.run(team, async () => {
      served[team] += 1;
      await nextTurn();
    });
  };
  const flood = Array.from({ length: 100 }, () => call('flood'));
  for (let n = 0; n < 10; n += 1) await call('small');
  assert.ok(served.flood < 25, `${served.flood} turns of the flood during 10 turns of the small team`);
  await Promise.all(flood);
});

test('within a team, calls with priority go first', async () => {
  const places = new FairPlaces({ places: 1 });
  const leave = await places.take('a');
  const order: string[] = [];
  const wait = (name: string, ahead: boolean) =>
    places.take('a', { ahead }).then((done) => {
      order.push(name);
      done();
    });
  const waits = [wait('first', false), wait('second', false), wait('ahead', true)];
  leave();
  leave();
  await Promise.all(waits);
  assert.deepEqual(order, ['ahead', 'first', 'second']);
});

test('a full queue refuses the team that fills it, and no other team', async () => {
  const places = new FairPlaces({ places: 1, mostWaiting: 8 });
  const leave = await places.take('x');
  const outcomes = await Promise.all([
    ...Array.from({ length: 20 }, () => settled(places, 'flood')),
    settled(places, 'small'),
    nextTurn().then(leave),
  ]);
  assert.equal(outcomes.slice(0, 20).filter((outcome) => outcome === 'refused').length, 14);
  assert.equal(outcomes[20], 'served');
});

test('refuses a call that waits too long, and frees its position in the queue', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const places = new FairPlaces({ places: 1, patienceMs: 1_000 });
  const leave = await places.take('a');
  const late = settled(places, 'a');
  t.mock.timers.tick(1_000);
  assert.equal(await late, 'refused');
  const next = settled(places, 'b');
  leave();
  assert.equal(await next, 'served');
});

async function settled(places: FairPlaces, team: string): Promise<'served' | 'refused'> {
  try {
    (await places.take(team))();
    return 'served';
  } catch (error) {
    assert.ok(error instanceof NoPlaceError);
    return 'refused';
  }
}
