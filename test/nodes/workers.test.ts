/**
 * A cluster of Citus that loses a worker or moves shards, while jobs are queued, run and delivered. Deterministic: the
 * invariants afterwards. Not deterministic: what each job was doing at that moment.
 */
import assert from 'node:assert/strict';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type CitusDatabase, NO_CITUS } from '../support/citus.ts';
import {
  allDelivered,
  ended,
  queue,
  queueAgainAndAgain,
  rows,
  settingsOf,
  startTeams,
  type Team,
  type TeamsOnCitus,
} from '../support/nodes/teams-on-citus.ts';
import type { Receiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** How long a job of a team on a healthy worker may take, from its queue call to its delivery. */
const PROMPT_MS = 10_000;
const PROGRAM = join(import.meta.dirname, '../support/faults/short-lease-server.ts');
const LINUX = { skip: NO_CITUS, timeout: 240_000 };

test('moving shards under load loses nothing', LINUX, async (t) => {
  for (const mode of ['block_writes', 'auto']) {
    await t.test(mode, async (t) => {
      const running = await startTeams(t);
      const { database, teams, receiver } = running;
      const loaded = new AbortController();
      const load = Promise.all(teams.map((team) => queueAgainAndAgain(running, team, loaded.signal)));
      try {
        await until('every team works', () => teams.every((team) => ended(receiver, team) > 0));
        const moved = await moveShards(database, mode);
        t.diagnostic(`${moved.length} shard groups moved, which took ${moved.map(Math.round).join(', ')} ms`);
      } finally {
        loaded.abort();
        await load;
      }
      await allDelivered(t, running);
    });
  }
});

test('without a worker, only its teams stop, and they continue when it is back', LINUX, async (t) => {
  const running = await startTeams(t);
  const { teams, service, receiver } = running;
  const [{ worker }] = teams as [Team];
  const [lost, kept] = [
    teams.filter((team) => team.worker === worker),
    teams.filter((team) => team.worker !== worker),
  ];
  assert.ok(kept.length > 0);
  const loaded = new AbortController();
  const load = Promise.all(teams.map((team) => queueAgainAndAgain(running, team, loaded.signal)));
  try {
    await until('every team works', () => teams.every((team) => ended(receiver, team) > 0));
    await worker.kill();
    const longest = { ms: 0 };
    // Longer than the leases of lanes and jobs, which must be renewed for the other teams.
    for (const deadline = performance.now() + 30_000; performance.now() < deadline; ) {
      await Promise.all(
        kept.map(async (team) => {
          const ms = await oneJob(running, team);
          longest.ms = Math.max(longest.ms, ms);
        }),
      );
    }
    t.diagnostic(`without a worker: at most ${Math.round(longest.ms)} ms from a queue call to the delivery`);
    assert.ok(longest.ms < PROMPT_MS);
    for (const team of lost) {
      const answer = await queue(service, team);
      assert.equal(answer.status, 503, JSON.stringify(answer.body));
      assert.match(JSON.stringify(answer.body), /database/i);
    }
    const backMs = performance.now();
    await worker.resume();
    await Promise.all(lost.map((team) => oneJob(running, team)));
    t.diagnostic(
      `every team worked again ${Math.round(performance.now() - backMs)} ms after the restart began`,
    );
  } finally {
    loaded.abort();
    await load;
  }
  await allDelivered(t, running);
});

test('a node that dies while a worker is down is replaced by another', LINUX, async (t) => {
  const running = await startTeams(t);
  const { database, receiver, teams } = running;
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-workers-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  await cp(join(running.service.directory, 'workflows'), join(directory, 'workflows'), { recursive: true });
  await running.service.stop();
  // It runs no jobs, so the other two do.
  const service = await startService({ settings: { ...settingsOf(database), FLOWHOOK_ROLE: 'api' } });
  t.after(() => service.stop());
  const node = (name: string) =>
    startServerProcess(
      {
        ...settingsOf(database),
        FLOWHOOK_DATA: join(directory, name),
        FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
        FLOWHOOK_MAX_RUNNING_JOBS: String(2 * teams.length),
        LEASE_MS: '1000',
      },
      { program: PROGRAM },
    );
  const dying = await node('dying');
  const kept = new Set<string>();
  const [{ worker }] = teams as [Team];
  for (const team of teams) {
    const job = (await queue(service, team, 'stuck')).headers.get('x-job-id') ?? '';
    team.accepted.add(job);
    if (team.worker !== worker) kept.add(job);
    await until(`job ${job} runs`, async () => {
      const { body } = await service.call('GET', `/v1/jobs/${job}`, undefined, { 'x-api-key': team.key });
      return (body as { state: string }).state === 'running';
    });
  }
  const other = await node('other');
  t.after(() => other.kill());
  await worker.kill();
  await dying.kill();
  const diedMs = performance.now();
  const arrived = (all: Receiver['received']) => new Set(all.map(({ event }) => event.jobId));
  await receiver.until((all) => kept.isSubsetOf(arrived([...all])), 'the jobs of teams on the other worker');
  t.diagnostic(`${kept.size} jobs of a dead node ended after ${Math.round(performance.now() - diedMs)} ms`);
  await worker.resume();
  await allDelivered(t, running);
});

/** Moves every shard of the teams, with those of the other tables, to the other worker. Returns the durations in ms. */
async function moveShards({ url }: CitusDatabase, mode: string): Promise<number[]> {
  const shards = await rows<{ id: string; from: string; to: string }>(
    url,
    `select shardid as id, nodename as from,
            (select nodename from pg_dist_node where noderole = 'primary' and groupid <> 0 and nodename <> place.nodename) as to
     from pg_dist_shard_placement place join pg_dist_shard using (shardid) where logicalrelid = 'team'::regclass`,
  );
  const took: number[] = [];
  for (const { id, from, to } of shards) {
    const fromMs = performance.now();
    await rows(
      url,
      `select citus_move_shard_placement($1::bigint, $2::text, 5432, $3::text, 5432, shard_transfer_mode := '${mode}')`,
      [id, from, to],
    );
    took.push(performance.now() - fromMs);
  }
  return took;
}

/** Queues a job, and returns the milliseconds until its delivery. Asks again while the team gets 503. */
async function oneJob({ service, receiver }: TeamsOnCitus, team: Team): Promise<number> {
  const fromMs = performance.now();
  const job = await until(`a job of ${team.slug}`, async () => {
    const answer = await queue(service, team, 'probe');
    return answer.status === 200 && (answer.headers.get('x-job-id') ?? '');
  });
  team.accepted.add(job);
  await receiver.until((all) => all.some(({ event }) => event.jobId === job), `job ${job} of ${team.slug}`);
  return performance.now() - fromMs;
}
