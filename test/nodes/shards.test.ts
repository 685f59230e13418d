/**
 * In a distributed database, no transaction of a queue call, a claim, a publish or a delivery uses more than one shard.
 * Searches for teams with work may, and the start of a node.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CITUS } from '../support/citus.ts';
import { elapsed } from '../support/faults/crash.ts';
import { allDelivered, ended, queueAgainAndAgain, startTeams } from '../support/nodes/teams-on-citus.ts';
import { logShards, type WideTransaction, watchShards } from '../support/store/wide-transactions.ts';
import { until } from '../support/until.ts';

/** How long the load lasts. The long form: `SHARDS_SECONDS=300`. */
const SECONDS = Number(process.env.SHARDS_SECONDS ?? 3);
/**
 * Reads of a node, by its clock: agendas and pages of all teams and workflows, due schedules, replays, and jobs of dead
 * nodes.
 */
const SEARCHES = [
  /^select .* from team (\/\* use team_|where id > \$1)/,
  /^select .* from workflow (\/\* use workflow_|where next_run_at is not null|where \(team_id, id\) > )/,
  /^select .* from replay \/\* use replay_running/,
  /^select .* from job \/\* use job_running \*\/ where state = 'running' and \(node_id = /,
];

test('a job from its queue call to its delivery uses only the shard of its team', {
  skip: NO_CITUS,
  timeout: (SECONDS + 240) * 1_000,
}, async (t) => {
  const running = await startTeams(t, logShards);
  const { citus, database, receiver, teams } = running;
  const wide = await watchShards(citus, database);
  const loaded = new AbortController();
  const load = Promise.all(teams.map((team) => queueAgainAndAgain(running, team, loaded.signal)));
  try {
    await elapsed(SECONDS * 1_000);
    await until('every team works', () => teams.every((team) => ended(receiver, team) > 0));
  } finally {
    loaded.abort();
    await load;
  }
  await allDelivered(t, running);
  const found = await wide();
  assert.deepEqual(
    found.filter((transaction) => !isSearch(transaction)),
    [],
  );
});

function isSearch({ statements }: WideTransaction): boolean {
  return statements.every((statement) => SEARCHES.some((search) => search.test(statement)));
}
