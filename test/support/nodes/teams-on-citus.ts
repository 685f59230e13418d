/** Ten teams on a cluster of Citus, whose jobs are queued, run and delivered. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import pg from 'pg';
import { SCOPES } from '../../../src/model/team.ts';
import { mintKey } from '../../../src/teams/keys.ts';
import { type CitusCluster, type CitusDatabase, startCitus } from '../citus.ts';
import { elapsed } from '../faults/crash.ts';
import type { Cluster } from '../postgres.ts';
import { type Receiver, startReceiver } from '../receiver.ts';
import { startService, type TestService } from '../service.ts';

/** With four shards, it is nearly certain that each worker has some of them. */
const TEAMS = Array.from({ length: 10 }, (_, n) => `team-${n}`);
/** Delay after a call that queues a job. */
const QUEUE_EVERY_MS = 200;
const ENCRYPTION_KEY = 'ab'.repeat(32);
const QUICK = `source: { type: command, command: [sh, -c, 'echo "{\\"id\\":\\"$FLOWHOOK_JOB\\"}"'] }\n`;
/** The first attempt does not end. */
const STUCK_ONCE = `source: { type: command, command: [sh, -c, '[ "$FLOWHOOK_ATTEMPT" = 1 ] && sleep 600; echo "{\\"id\\":\\"1\\"}"'] }\n`;

export interface Team {
  slug: string;
  id: string;
  key: string;
  worker: Cluster;
  accepted: Set<string>;
}

export interface TeamsOnCitus {
  citus: CitusCluster;
  database: CitusDatabase;
  service: TestService;
  receiver: Receiver;
  teams: Team[];
}

/** @param prepare is called before the service connects */
export async function startTeams(
  t: TestContext,
  prepare: (database: CitusDatabase) => Promise<void> = async () => {},
): Promise<TeamsOnCitus> {
  // Committed data must survive a crash of a worker.
  const citus = await startCitus({ synchronous_commit: 'on' });
  t.after(() => citus.stop());
  const database = await citus.makeDistributed();
  await prepare(database);
  const service = await startService({
    workflows: Object.fromEntries(
      TEAMS.flatMap((slug) => [
        [`${slug}/people.yaml`, QUICK],
        [`${slug}/stuck.yaml`, STUCK_ONCE],
        [`${slug}/probe.yaml`, QUICK],
      ]),
    ),
    settings: settingsOf(database),
  });
  t.after(() => service.stop());
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const teams: Team[] = [];
  for (const slug of TEAMS) {
    const { id } = await service.store.teams.ensure({ slug });
    const { key } = await mintKey(service.store, {
      teamId: id,
      name: 'test',
      scopes: SCOPES,
      expiresAt: null,
    });
    const worker = await workerOf(citus, database, id);
    teams.push({ slug, id, key, worker, accepted: new Set() });
    for (const workflowId of ['people', 'stuck', 'probe']) {
      const body = { workflowId, webhookUrl: receiver.url, events: ['workflow_finished'] };
      const answer = await service.call('POST', '/v1/integrations/webhooks/subscribe', body, {
        'x-api-key': key,
      });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
  }
  return { citus, database, service, receiver, teams };
}

export function settingsOf(database: CitusDatabase): Record<string, string> {
  return {
    FLOWHOOK_DATABASE: database.url,
    FLOWHOOK_ENCRYPTION_KEY: ENCRYPTION_KEY,
    FLOWHOOK_ALLOW_NETWORKS: 'loopback',
    FLOWHOOK_KEEP_JOBS: '100000',
  };
}

export async function rows<Row>(url: string, sql: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql, values)).rows as Row[];
  } finally {
    await client.end();
  }
}

async function workerOf(citus: CitusCluster, { url }: CitusDatabase, teamId: string): Promise<Cluster> {
  const [found] = await rows<{ nodename: string }>(
    url,
    `select nodename from pg_dist_shard_placement where shardid = get_shard_id_for_distribution_column('team', $1::text)`,
    [teamId],
  );
  return citus.workers.find(({ place }) => place === found?.nodename) as Cluster;
}

export function queue(service: TestService, team: Team, workflowId = 'people') {
  return service.call('POST', `/v1/workflows/${workflowId}/queue`, undefined, { 'x-api-key': team.key });
}

/** Queues jobs of a team, each when the one before has ended. Calls may fail with 503 meanwhile. */
export async function queueAgainAndAgain(
  { service }: TeamsOnCitus,
  team: Team,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const answer = await queue(service, team);
    if (answer.status === 200) team.accepted.add(answer.headers.get('x-job-id') ?? '');
    else assert.ok([400, 503].includes(answer.status), JSON.stringify(answer.body));
    await elapsed(QUEUE_EVERY_MS);
  }
}

/** The number of ended jobs whose event arrived. */
export function ended({ received }: Receiver, { accepted }: Team): number {
  return received.filter(({ event }) => accepted.has(event.jobId ?? '')).length;
}

/** Every accepted job has ended once, and its event has arrived. */
export async function allDelivered(t: TestContext, { receiver, teams }: TeamsOnCitus): Promise<void> {
  const accepted = teams.flatMap((team) => [...team.accepted]);
  await receiver.until((all) => {
    const arrived = new Set(all.map(({ event }) => event.jobId));
    return accepted.every((job) => arrived.has(job));
  }, `the events of ${accepted.length} jobs`);
  const events = new Map<string, Set<string>>();
  for (const { event } of receiver.received) {
    const ids = events.get(event.jobId ?? '') ?? new Set();
    events.set(event.jobId ?? '', ids.add(event.id));
  }
  for (const [job, ids] of events) assert.equal(ids.size, 1, `job ${job} has ended ${ids.size} times`);
  const ids = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
  t.diagnostic(
    `${accepted.length} jobs accepted, ${receiver.received.length - ids.size} deliveries repeated`,
  );
}
