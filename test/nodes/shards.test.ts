/**
 * In a distributed database, no transaction of a queue call, a claim, a publish or a delivery uses more than one shard.
 * Searches for teams with work may, and the start of a node.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distributedDatabase, NO_CITUS } from '../support/citus.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';
import { logShards, type WideTransaction, watchShards } from '../support/store/wide-transactions.ts';

const JOBS = 10;
const WORKFLOW = `source: { type: command, command: [sh, -c, 'echo "{\\"id\\":\\"$FLOWHOOK_JOB\\"}"'] }\n`;
/** Reads of a node, by its clock: agendas and pages of all teams and workflows, due schedules, and replays. */
const SEARCHES = [
  /^select .* from team (\/\* use team_|where id > \$1)/,
  /^select .* from workflow where (next_run_at is not null|\(team_id, id\) > )/,
  /^select .* from replay \/\* use replay_running/,
];

test('a job from its queue call to its delivery uses only the shard of its team', {
  skip: NO_CITUS,
}, async () => {
  const database = await distributedDatabase();
  await logShards(database);
  const service = await startService({
    workflows: { 'default/people.yaml': WORKFLOW },
    settings: {
      FLOWHOOK_DATABASE: database.url,
      FLOWHOOK_ENCRYPTION_KEY: 'ab'.repeat(32),
      FLOWHOOK_ALLOW_NETWORKS: 'loopback',
    },
  });
  const receiver = await startReceiver();
  try {
    await service.call('POST', '/v1/integrations/webhooks/subscribe', {
      workflowId: 'people',
      webhookUrl: receiver.url,
      events: ['workflow_finished'],
    });
    const wide = await watchShards(database);
    for (let job = 1; job <= JOBS; job += 1) {
      assert.equal((await service.call('POST', '/v1/workflows/people/queue')).status, 200);
      await receiver.until((received) => received.length === job, `job ${job}`);
    }
    const found = await wide();
    assert.deepEqual(
      found.filter((transaction) => !isSearch(transaction)),
      [],
    );
  } finally {
    await service.stop();
    await receiver.stop();
    await database.drop();
  }
});

function isSearch({ statements }: WideTransaction): boolean {
  return statements.every((statement) => SEARCHES.some((search) => search.test(statement)));
}
