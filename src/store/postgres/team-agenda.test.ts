/** What a node remembers of the teams' agendas. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { DueTeam } from '../operations/agenda.ts';
import { TeamAgenda } from './team-agenda.ts';

const LONGEST_WAIT_MS = 1_000_000;
const START_MS = 10_000_000;

let nowMs: number;
let elapsedMs: number;
let isTold: boolean;
let sweeps: number;
/** What the database says, in order. */
let stored: DueTeam[];
/** Called while a sweep reads. */
let meanwhile: (() => void) | undefined;
let agenda: TeamAgenda;

beforeEach(() => {
  [nowMs, elapsedMs, isTold, sweeps, stored, meanwhile] = [START_MS, 0, true, 0, [], undefined];
  agenda = new TeamAgenda({
    item: 'jobs',
    longestWaitMs: LONGEST_WAIT_MS,
    now: () => nowMs,
    elapsed: () => elapsedMs,
    isTold: () => isTold,
    read: async ({ after = -1, until, beyond = Number.MAX_SAFE_INTEGER, limit }) => {
      sweeps += 1;
      const found = [
        ...stored.filter(({ at }) => at > after && at <= until).slice(0, limit),
        ...stored.filter(({ at }) => at > beyond),
      ];
      meanwhile?.();
      return found;
    },
  });
});

const due = async () => (await agenda.due()).map(({ teamId }) => teamId);
const found = (teamId: string, at: number | null) => agenda.put({ teamId, at, since: agenda.changes });

test('the first search begins with a sweep, and finds the teams that have been due longest first', async () => {
  stored = [
    { teamId: 'a', at: START_MS - 2 },
    { teamId: 'b', at: START_MS - 1 },
    { teamId: 'later', at: START_MS + 30_000 },
  ];
  assert.deepEqual(await due(), ['a', 'b']);
  nowMs += 30_000;
  assert.deepEqual(await due(), ['a', 'b', 'later'], 'the sweep has looked ahead');
  assert.equal(sweeps, 1);
});

test('a noted team is due without a sweep', async () => {
  await due();
  agenda.note(['a']);
  assert.deepEqual(await due(), ['a']);
  assert.equal(sweeps, 1);
});

test('a sweep follows 5 s after the last one, and when any team may be due', async () => {
  await due();
  stored = [{ teamId: 'a', at: START_MS }];
  elapsedMs = 4_999;
  assert.deepEqual(await due(), []);
  elapsedMs = 5_000;
  assert.deepEqual(await due(), ['a']);
  stored = [{ teamId: 'b', at: START_MS }];
  agenda.note(null);
  assert.deepEqual(await due(), ['b']);
});

test('a sweep precedes every search while no hints arrive', async () => {
  isTold = false;
  await due();
  stored = [{ teamId: 'a', at: START_MS }];
  assert.deepEqual(await due(), ['a']);
});

test('a search says when a team is next due', async () => {
  agenda.note(['a', 'b']);
  await due();
  agenda.note(['a', 'b']);
  found('a', null);
  found('b', START_MS + 500);
  assert.deepEqual(await due(), []);
  assert.deepEqual(await agenda.all(), [{ teamId: 'b', at: START_MS + 500 }]);
  nowMs += 500;
  assert.deepEqual(await due(), ['b']);
});

test('teams that stay due come after the others, also after a sweep', async () => {
  stored = [
    { teamId: 'a', at: START_MS - 2 },
    { teamId: 'b', at: START_MS - 1 },
    { teamId: 'c', at: START_MS },
  ];
  await due();
  found('b', START_MS - 1);
  found('a', START_MS - 2);
  elapsedMs += 5_000;
  assert.deepEqual(await due(), ['c', 'b', 'a']);
});

test('sweeps reach the teams after 10,000 teams that stay due, and then begin again', async () => {
  isTold = false;
  stored = Array.from({ length: 10_001 }, (_, n) => ({ teamId: `${n}`, at: n }));
  for (const teamId of await due()) found(teamId, Number(teamId));
  stored.unshift({ teamId: 'restored', at: 0 });
  const later: string[] = [];
  for (let search = 0; search < 4; search++) {
    const [teamId] = await due();
    later.push(teamId as string);
    found(teamId as string, START_MS);
  }
  assert.ok(later.includes('10000') && later.includes('restored'), later.join());
});

test('a search does not replace what was noted while it ran', async () => {
  await due();
  agenda.note(['a']);
  const since = agenda.changes;
  agenda.note(['a']);
  agenda.put({ teamId: 'a', at: null, since });
  assert.deepEqual(await due(), ['a']);
});

test('a sweep does not replace what was noted while it ran', async () => {
  meanwhile = () => agenda.note(['a']);
  assert.deepEqual(await due(), ['a']);
  meanwhile = () => agenda.note(null);
  elapsedMs += 5_000;
  await due();
  meanwhile = undefined;
  await due();
  assert.equal(sweeps, 3, 'a sweep follows when any team has become due during one');
});

test('a sweep forgets teams that are no longer on the agenda', async () => {
  await due();
  agenda.note(['a']);
  elapsedMs += 5_000;
  assert.deepEqual(await due(), []);
});

test('work dated too far ahead is due, because the clock was set back', async () => {
  stored = [{ teamId: 'a', at: START_MS + LONGEST_WAIT_MS + 1 }];
  assert.deepEqual(await due(), ['a']);
});

test('a sweep that fails is repeated by the next search', async () => {
  meanwhile = () => {
    throw new Error('The database does not respond');
  };
  await assert.rejects(due());
  meanwhile = undefined;
  stored = [{ teamId: 'a', at: START_MS }];
  assert.deepEqual(await due(), ['a']);
});
