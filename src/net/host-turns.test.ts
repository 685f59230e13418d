/** Throttling of requests to a host, in this process and over a stream from another process. */
import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { createHostTurns, type HostTurns } from './host-turns.ts';
import { remoteTurns, serveTurns } from './host-turns-channel.ts';

const NEVER = new AbortController().signal;
const FREELY = { perHost: 1, delayMs: 0 };

/** Lets pending callbacks run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Whether a promise has settled. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  promise.then(
    () => {
      done = true;
    },
    () => {
      done = true;
    },
  );
  for (let turn = 0; turn < 5; turn++) await settle();
  return done;
}

/** Both ends of a stream between two processes. */
function channel(): [Duplex, Duplex] {
  const ends = [0, 1].map(
    (at): Duplex =>
      new Duplex({
        read() {},
        write(chunk, _encoding, done) {
          ends[1 - at]?.push(chunk);
          done();
        },
        destroy(_error, done) {
          const other = ends[1 - at];
          if (other?.destroyed === false) other.destroy();
          done(null);
        },
      }),
  );
  return ends as [Duplex, Duplex];
}

/** The throttle in this process and over a stream. */
const BOTH: [string, () => HostTurns][] = [
  ['in one process', () => createHostTurns().of('a', { bindsOthers: true })],
  [
    'over a stream',
    () => {
      const [near, far] = channel();
      serveTurns(near, createHostTurns().of('a', { bindsOthers: true }));
      return remoteTurns(far);
    },
  ],
];

for (const [where, make] of BOTH) {
  test(`${where}: limits concurrent requests to each host, first come, first served`, async () => {
    const turns = make();
    const first = await turns.enter('a', FREELY, NEVER);
    const second = turns.enter('a', FREELY, NEVER);
    const third = turns.enter('a', FREELY, NEVER);
    (await turns.enter('b', FREELY, NEVER))();
    assert.equal(await isDone(second), false);
    first();
    first();
    (await second)();
    (await third)();
  });

  test(`${where}: a caller that gives up makes room`, async () => {
    const turns = make();
    const first = await turns.enter('a', FREELY, NEVER);
    const stop = new AbortController();
    const second = turns.enter('a', FREELY, stop.signal);
    const third = turns.enter('a', FREELY, NEVER);
    stop.abort(new Error('enough'));
    await assert.rejects(second, /enough/);
    first();
    (await third)();
    await assert.rejects(turns.enter('a', FREELY, stop.signal), /enough/);
  });
}

test('the strictest limits apply to all callers, and a delay requested by the host stays', async (t) => {
  const { now, advance } = clock(t);
  const turns = createHostTurns(now).of('a', { bindsOthers: true });
  const strict = await turns.enter('a', { perHost: 1, delayMs: 10_000 }, NEVER);
  const free = turns.enter('a', { perHost: 64, delayMs: 0 }, NEVER);
  advance(20_000);
  assert.equal(await isDone(free), false);
  strict();
  (await free)();

  turns.slowDown('b', 5_000);
  turns.slowDown('b', 1_000);
  (await turns.enter('b', { perHost: 64, delayMs: 0 }, NEVER))();
  const next = turns.enter('b', { perHost: 64, delayMs: 0 }, NEVER);
  advance(4_999);
  assert.equal(await isDone(next), false);
  advance(1);
  (await next)();
});

function clock(t: TestContext): { now: () => number; advance(ms: number): void } {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 1_000;
  return {
    now: () => now,
    advance(ms) {
      now += ms;
      t.mock.timers.tick(ms);
    },
  };
}

test('keeps the delay between two requests, and continues after a rest', async (t) => {
  const { now, advance } = clock(t);
  const turns = createHostTurns(now).of('a', { bindsOthers: true });
  const pace = { perHost: 4, delayMs: 500 };
  (await turns.enter('a', pace, NEVER))();
  const second = turns.enter('a', pace, NEVER);
  advance(499);
  assert.equal(await isDone(second), false);
  advance(1);
  (await second)();

  turns.rest('a', 10_000, 'all');
  const third = turns.enter('a', FREELY, NEVER);
  turns.rest('a', 5_000, 'team');
  advance(9_999);
  assert.equal(await isDone(third), false);
  advance(1);
  (await third)();
});

function teams(turns: ReturnType<typeof createHostTurns>, ...[one, two]: [string, string]) {
  return [turns.of(one, { bindsOthers: true }), turns.of(two, { bindsOthers: true })] as const;
}

test('the pace of a team applies only to that team; the limits of the host apply to all teams', async (t) => {
  const { now, advance } = clock(t);
  const turns = createHostTurns(now);
  const [slow, quick] = teams(turns, 'slow', 'quick');
  const pace = { perHost: 1, delayMs: 60_000 };
  await slow.enter('a', pace, NEVER);
  const waiting = slow.enter('a', pace, NEVER);
  for (let n = 0; n < 5; n += 1) (await quick.enter('a', FREELY, NEVER))();
  assert.equal(await isDone(waiting), false);

  slow.rest('a', 1_000, 'all');
  const afterRest = quick.enter('a', FREELY, NEVER);
  assert.equal(await isDone(afterRest), false);
  advance(1_000);
  (await afterRest)();
  slow.slowDown('a', 500);
  const afterDelay = quick.enter('a', FREELY, NEVER);
  assert.equal(await isDone(afterDelay), false);
  advance(500);
  (await afterDelay)();
});

test('a pause after 429 applies only to the team that received it', async (t) => {
  const { now, advance } = clock(t);
  const [limited, other] = teams(createHostTurns(now), 'limited', 'other');
  limited.rest('a', 300_000, 'team');
  const waiting = limited.enter('a', FREELY, NEVER);
  assert.ok(await isDone(other.enter('a', FREELY, NEVER)));
  advance(299_999);
  assert.equal(await isDone(waiting), false);
  advance(1);
  (await waiting)();
});

test('limits that a module reports apply only to its own team', async (t) => {
  const { now, advance } = clock(t);
  const turns = createHostTurns(now);
  const own = turns.of('own', { bindsOthers: false });
  const [near, far] = channel();
  serveTurns(near, own);
  far.write('{"rest":300000,"host":"a","whom":"all"}\n{"slowDown":60000,"host":"b"}\n');
  await settle();
  const other = turns.of('other', { bindsOthers: true });
  const free = { perHost: 2, delayMs: 0 };
  for (const host of ['a', 'b', 'b']) assert.ok(await isDone(other.enter(host, free, NEVER)), host);
  const resting = own.enter('a', free, NEVER);
  (await own.enter('b', free, NEVER))();
  const slowed = own.enter('b', free, NEVER);
  assert.equal(await isDone(Promise.race([resting, slowed])), false);
  advance(60_000);
  assert.ok(await isDone(slowed));
  advance(240_000);
  assert.ok(await isDone(resting));
});

test('teams take turns at a host that requested a delay', async (t) => {
  const { now, advance } = clock(t);
  const turns = createHostTurns(now);
  const [flood, small] = teams(turns, 'flood', 'small');
  const free = { perHost: 64, delayMs: 0 };
  flood.slowDown('a', 1_000);
  const order: string[] = [];
  const enter = (team: HostTurns, name: string) => team.enter('a', free, NEVER).then(() => order.push(name));
  const all = [1, 2, 3, 4].map(() => enter(flood, 'flood'));
  all.push(enter(small, 'small'));
  for (let n = 0; n < 4; n += 1) {
    await settle();
    advance(1_000);
  }
  await Promise.all(all);
  assert.deepEqual(order, ['flood', 'small', 'flood', 'flood', 'flood']);
});

test('releases the turns of a process when it ends', async () => {
  const turns = createHostTurns().of('a', { bindsOthers: true });
  const [near, far] = channel();
  serveTurns(near, turns);
  const remote = remoteTurns(far);
  await remote.enter('a', FREELY, NEVER);
  remote.enter('a', FREELY, NEVER).catch(() => {});
  const here = turns.enter('a', FREELY, NEVER);
  assert.equal(await isDone(here), false);
  // The process is killed in the middle of a line.
  far.write('{"ent');
  far.destroy();
  (await here)();
});

test('a child that writes anything can neither crash the server nor block a host permanently', async (t) => {
  const { now, advance } = clock(t);
  const turns = createHostTurns(now).of('a', { bindsOthers: true });
  for (const line of ['null', '1', '"enter"', 'not JSON', '[', 'x'.repeat(20_000)]) {
    const [near, far] = channel();
    serveTurns(near, turns);
    far.write(`${line}\n`);
    await settle();
    assert.equal(far.destroyed, true, line);
  }
  const [near, far] = channel();
  serveTurns(near, turns);

  // An id that is used twice counts as one request, because a second request with this id would never be released.
  far.write('{"enter":1,"host":"c","perHost":2,"delayMs":0}\n'.repeat(2));
  await settle();
  far.write('{"leave":1}\n');
  await settle();
  assert.ok(await isDone(turns.enter('c', { perHost: 1, delayMs: 0 }, NEVER)));

  far.write('{"rest":1e15,"host":"a"}\n{"slowDown":1e15,"host":"b"}\n');
  far.write('{"rest":"long","host":"d"}\n{"rest":60000,"host":"d"}\n');
  await settle();
  const afterRest = turns.enter('a', FREELY, NEVER);
  assert.equal(await isDone(afterRest), false);
  const afterNonsense = turns.enter('d', FREELY, NEVER);
  assert.equal(await isDone(afterNonsense), false);
  (await turns.enter('b', FREELY, NEVER))();
  const afterDelay = turns.enter('b', FREELY, NEVER);
  assert.equal(await isDone(afterDelay), false);
  advance(60_000);
  assert.ok(await isDone(afterDelay));
  assert.ok(await isDone(afterNonsense));
  assert.equal(await isDone(afterRest), false);
  advance(4 * 60_000);
  assert.ok(await isDone(afterRest));
});
