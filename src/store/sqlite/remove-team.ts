/** Deleting a team: `retire` puts it out of use at once, `remove` then deletes its rows a few at a time. */
import type { Table } from '../copy/tables.ts';
import type { TeamOperations } from '../store.ts';
import { RETIRED, retiredSlug, slugBefore, TEAM_TABLES } from '../team-tables.ts';
import type { Value } from './database.ts';
import { MAX_BATCH_BYTES } from './stage.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof TeamOperations> = Parameters<TeamOperations[Name]>[0];
type Result<Name extends keyof TeamOperations> = Awaited<ReturnType<TeamOperations[Name]>>;

export function retire(tx: Tx, { teamId, force }: Input<'retire'>): Result<'retire'> {
  const team = tx.db.get<{ id: string; slug: string }>('select id, slug from team where id = ?', teamId);
  if (team === undefined || team.slug.startsWith(RETIRED)) return undefined;
  const running = tx.db
    .all<{ id: string }>(
      `select id from job indexed by job_running where team_id = ? and state = 'running' order by id`,
      teamId,
    )
    .map(({ id }) => id);
  if (running.length > 0 && !force) return { outcome: 'running', running, slug: team.slug };
  tx.db.run('delete from api_key where team_id = ?', teamId);
  tx.db.run(
    'update workflow set archived_at = coalesce(archived_at, ?), next_run_at = null where team_id = ?',
    tx.now,
    teamId,
  );
  tx.db.run(
    `update job indexed by job_slot set parked = 1
     where team_id = ? and finished_at is null`,
    teamId,
  );
  tx.db.run(
    `update webhook set state = 'deleted', deleted_at = ? where team_id = ? and state <> 'deleted'`,
    tx.now,
    teamId,
  );
  tx.db.run('update inspector set expires_at = ? where team_id = ?', tx.now, teamId);
  tx.db.run('update team set slug = ? where id = ?', retiredSlug(team), teamId);
  Object.assign(tx.touched, { keys: true, jobs: true, deliveries: true, lanes: null });
  return { outcome: 'retired', running, slug: team.slug };
}

export function retired(view: View, { after = '', limit }: Input<'retired'>): Result<'retired'> {
  return view.db
    .all<{ id: string; slug: string }>(
      `select id, slug from team where id > ? and slug like '${RETIRED}%' order by id limit ?`,
      after,
      limit,
    )
    .map(({ id, slug }) => ({ id, slug: slugBefore(slug) }));
}

/** Starts with the first table every time, because work under way may have written there again. */
export function remove(tx: Tx, { teamId, limit }: Input<'delete'>): Result<'delete'> {
  const team = tx.db.get<{ slug: string }>('select slug from team where id = ?', teamId);
  if (team === undefined) return { done: true };
  if (!team.slug.startsWith(RETIRED)) throw new Error(`Team ${teamId} must be retired before it is deleted`);
  const room = { rows: limit, bytes: MAX_BATCH_BYTES };
  for (const table of TEAM_TABLES) {
    for (const selector of selectorsOf(tx, table, teamId)) empty(tx, { ...table, ...selector }, room);
    if (room.rows <= 0 || room.bytes <= 0) return { done: false };
  }
  tx.db.run('delete from team where id = ?', teamId);
  return { done: true };
}

/** Conditions that select the team's rows: `record` has no team, only the number of the workflow. */
function selectorsOf(tx: Tx, { name, key }: Table, teamId: string) {
  if (name !== 'record') return [{ key, where: 'team_id = ?', value: teamId as Value }];
  return tx.db
    .all<{ number: number }>('select number from workflow where team_id = ?', teamId)
    .map(({ number }) => ({
      key: ['workflow', 'seq', 'added_in'],
      where: 'workflow = ?',
      value: number as Value,
    }));
}

/** One row at a time, so that none is read in vain: a row of 1 MiB takes milliseconds. */
function empty(
  tx: Tx,
  { name, key, long = [], where, value }: Table & { where: string; value: Value },
  room: { rows: number; bytes: number },
): void {
  const bytes = ['0', ...long.map((column) => `coalesce(octet_length(${column}), 0)`)].join(' + ');
  const first = `select ${key.join(', ')}, ${bytes} as bytes from ${name} where ${where} limit 1`;
  const same = key.map((column) => `${column} = ?`).join(' and ');
  while (room.rows > 0 && room.bytes > 0) {
    const row = tx.db.get<Record<string, Value> & { bytes: number }>(first, value);
    if (row === undefined) return;
    tx.db.run(`delete from ${name} where ${same}`, ...key.map((column) => row[column] as Value));
    room.rows -= 1;
    room.bytes -= row.bytes;
  }
}
