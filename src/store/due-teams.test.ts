/** Visits of teams that are due. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { forDueTeams } from './due-teams.ts';

test('a hundred teams whose visits fail do not keep the others from being visited', async () => {
  const due = Array.from({ length: 250 }, (_, n) => ({ teamId: `team_${n}`, at: n }));
  const visits: string[] = [];
  // Teams stay due when their visit has failed.
  const left = new Set(due.map(({ teamId }) => teamId));
  const store = {
    now: () => 1_000,
    agenda: {
      due: async ({ limit }: { limit: number }) =>
        due.filter(({ teamId }) => left.has(teamId)).slice(0, limit),
    },
  } as unknown as Parameters<typeof forDueTeams>[0]['store'];
  const { signal } = new AbortController();
  await forDueTeams({ store, log: silentLogger, item: 'prune', failed: 'failed', signal }, async (teamId) => {
    visits.push(teamId);
    if (Number(teamId.slice(5)) < 110) throw new Error('this team is damaged');
    left.delete(teamId);
  });
  assert.deepEqual(
    visits,
    due.map(({ teamId }) => teamId),
    'each once',
  );
});
