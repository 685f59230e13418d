/**
 * Teams and their signing keys. Deleting a team first retires the team, so that nobody can use it, and then deletes its
 * rows in small steps.
 */

import type { OwnQuotas, Quota } from '../../model/quota.ts';
import type { Team } from '../../model/team.ts';
import { newId } from '../../std/id.ts';
import { INSPECTOR_TABLES, TABLES, type Table } from '../copy/tables.ts';
import type { Page } from '../page.ts';
import { UNFINISHED } from '../rows.ts';
import { inParts, isFull, MAX_BATCH_BYTES, Part, type Room, type Sql, type Value } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { touchKeys } from './keys.ts';
import { inOrder } from './record-indexes.ts';

/** A team's ed25519 key. `privateKey` is encrypted; `publicKey` is the 32 raw bytes in base64. */
export interface SigningKey {
  teamId: string;
  id: string;
  publicKey: string;
  privateKey: string;
  createdAt: number;
}

/**
 * Prefix of a retired team's slug, followed by the former slug and the team's id. The prefix is not valid in other
 * slugs.
 */
const RETIRED = 'deleted:';
/** A pattern for `like`. */
export const RETIRED_SLUGS = `${RETIRED}%`;

const TEAM = new Part('select id, slug, created_at as "createdAt" from team');

/** Until the commit, nobody else creates a team with this slug: a distributed database does not keep slugs unique. */
const LOCK_SLUG = `select pg_advisory_xact_lock(hashtextextended('flowhook team ' || $1, 0))`;

/** Returns the team with this slug, and creates the team if it does not exist. */
export async function ensure(tx: Tx, { slug }: { slug: string }): Promise<Team> {
  const lock = tx.db.pick({ sqlite: undefined, postgres: LOCK_SLUG });
  let team = await bySlug(tx, { slug });
  if (team === undefined && lock !== undefined) {
    await tx.db.lock(lock, slug);
    team = await bySlug(tx, { slug });
  }
  const made =
    team !== undefined
      ? 0
      : await tx.db.run`
    insert into team (id, slug, created_at) values (${newId('team', tx.now)}, ${slug}, ${tx.now})
    on conflict do nothing`;
  if (made === 0) tx.repeated = true;
  return team ?? ((await bySlug(tx, { slug })) as Team);
}

export async function get(view: View, { teamId }: { teamId: string }): Promise<Team | undefined> {
  const team = await view.db.get<Team>`${TEAM} where id = ${teamId}`;
  return team?.slug.startsWith(RETIRED) ? undefined : team;
}

/** A team and its own quotas, read in one statement. Returns undefined if there is no such team. */
export async function withQuotas(
  view: View,
  { teamId }: { teamId: string },
): Promise<{ id: string; slug: string; quotas: OwnQuotas } | undefined> {
  const rows = await view.db.all<{ slug: string; name: Quota | null; most: number | null }>`
    select slug, name, most from team left join quota on team_id = team.id
    where team.id = ${teamId} and slug not like ${RETIRED_SLUGS}`;
  const [first] = rows;
  if (first === undefined) return undefined;
  // A team without quotas has one row, whose name is null.
  const own = first.name === null ? [] : rows;
  return {
    id: teamId,
    slug: first.slug,
    quotas: Object.fromEntries(own.map(({ name, most }) => [name, most])),
  };
}

export function bySlug(view: View, { slug }: { slug: string }): Promise<Team | undefined> {
  return view.db.get<Team>`${TEAM} where slug = ${slug}`;
}

/** Returns a page of the teams, ordered by id, which is the order of creation. */
export function list(view: View, { after = '', limit }: Page): Promise<Team[]> {
  return view.db.all<Team>`
    ${TEAM} where id > ${after} and slug not like ${RETIRED_SLUGS} order by id limit ${limit}`;
}

/**
 * Stores a signing key unless the team already has one. Returns the team's key, which is the same for all nodes, even
 * if several nodes call this at the same time.
 */
export async function ensureSigningKey(tx: Tx, key: SigningKey): Promise<SigningKey> {
  await tx.db.lock`select 1 from team where id = ${key.teamId} for update`;
  const stored = (await signingKeys(tx, { teamId: key.teamId })).at(-1);
  if (stored !== undefined) return stored;
  await tx.db.run`
    insert into signing_key (team_id, id, public_key, private_key, created_at)
    values (${key.teamId}, ${key.id}, ${key.publicKey}, ${key.privateKey}, ${key.createdAt})`;
  return key;
}

/** Every signing key of the team that receivers should accept, oldest first. */
export function signingKeys(view: View, { teamId }: { teamId: string }): Promise<SigningKey[]> {
  return view.db.all<SigningKey>`
    select team_id as "teamId", id, public_key as "publicKey", private_key as "privateKey",
           created_at as "createdAt"
    from signing_key where team_id = ${teamId} order by created_at, id`;
}

/**
 * Disables a team immediately and permanently: its keys are deleted, its slug becomes free, no more of its jobs start,
 * and nothing more is sent. If jobs are running, nothing changes unless `force` is set; with `force`, the caller must
 * cancel these jobs. Returns the ids of the running jobs and the slug that the team had, or undefined if there is no
 * such team.
 *
 * Rows are locked in the usual order: workflows, their jobs, webhooks, and last the team.
 */
export async function retire(
  tx: Tx,
  { teamId, force }: { teamId: string; force: boolean },
): Promise<{ outcome: 'retired' | 'running'; running: string[]; slug: string } | undefined> {
  await tx.db.run`select 1 from workflow where team_id = ${teamId} order by id for update`;
  // The query waits for claims that are under way, so that it finds the jobs that they start.
  const unfinished = await tx.db.all<{ id: string; state: string }>`
    select id, state from job /* use job_slot */ where team_id = ${teamId} and ${UNFINISHED}
    order by id for update`;
  const running = unfinished.filter(({ state }) => state === 'running').map(({ id }) => id);
  await tx.db.run`
    select 1 from webhook where team_id = ${teamId} and state <> 'deleted' order by id for update`;
  const team = await tx.db.get<{ id: string; slug: string }>`
    select id, slug from team where id = ${teamId} for update`;
  if (team === undefined || team.slug.startsWith(RETIRED)) return undefined;
  if (running.length > 0 && !force) return { outcome: 'running', running, slug: team.slug };
  await tx.db.run`
    update workflow set archived_at = coalesce(archived_at, ${tx.now}), next_run_at = null
    where team_id = ${teamId}`;
  await tx.db.run`
    update job /* use job_slot */ set parked = 1 where team_id = ${teamId} and ${UNFINISHED}`;
  await tx.db.run`
    update webhook set state = 'deleted', deleted_at = ${tx.now}
    where team_id = ${teamId} and state <> 'deleted'`;
  await tx.db.run`update inspector set expires_at = ${tx.now} where team_id = ${teamId}`;
  // This frees the slug. The retirement is marked in the slug instead of a new column, so that nodes of the previous
  // version can handle a retired team: for them it is a team without keys and workflows.
  await tx.db.run`update team set slug = ${`${RETIRED}${team.slug}:${teamId}`} where id = ${teamId}`;
  await tx.db.run`delete from api_key where team_id = ${teamId}`;
  await touchKeys(tx);
  Object.assign(tx.touched, { jobs: true, deliveries: true, lanes: null });
  return { outcome: 'retired', running, slug: team.slug };
}

/** Returns a page of the retired teams that still have rows, ordered by id, with their former slugs. */
export async function retired(
  view: View,
  { after = '', limit }: Page,
): Promise<{ id: string; slug: string }[]> {
  const rows = await view.db.all<{ id: string; slug: string }>`
    select id, slug from team where id > ${after} and slug like ${RETIRED_SLUGS} order by id limit ${limit}`;
  return rows.map(({ id, slug }) => ({ id, slug: slug.slice(RETIRED.length, slug.lastIndexOf(':')) }));
}

/**
 * Deletes the rows of a retired team, up to `limit` rows and about 1 MiB per call. Call until `done`, when nothing of
 * the team is left. Later writes of attempts that are still running are rejected. Rejects with an Error if the team is
 * not retired.
 *
 * Every call starts with the first table again, because operations that were running may have added rows to it.
 */
export async function remove(
  tx: Tx,
  { teamId, limit }: { teamId: string; limit: number },
): Promise<{ done: boolean }> {
  const team = await tx.db.get<{ slug: string }>`select slug from team where id = ${teamId}`;
  if (team === undefined) return { done: true };
  if (!team.slug.startsWith(RETIRED)) throw new Error(`Team ${teamId} must be retired before it is deleted`);
  await inOrder(tx.db);
  const room = { rows: limit, bytes: MAX_BATCH_BYTES };
  for (const table of TEAM_TABLES) {
    await empty(tx, table, teamId, room);
    if (isFull(room)) return { done: false };
  }
  const lanes = tx.db.pick({ sqlite: undefined, postgres: 'delete from lane where team_id = $1' });
  if (lanes !== undefined) await tx.db.run(lanes, teamId);
  await tx.db.run`delete from team where id = ${teamId}`;
  return { done: true };
}

/** Deletes rows of the team from a table until `room` is used up. */
async function empty({ db }: Tx, table: Table, teamId: string, room: Room): Promise<void> {
  const { key } = table;
  if (table.name === 'record' && db.pick({ sqlite: true, postgres: false })) {
    const keys = ['seq', 'added_in'];
    const workflows = await db.all<{ number: number }>`
      select number from workflow where team_id = ${teamId} order by number`;
    for (const { number } of workflows) await emptyOf(db, { ...table, of: 'workflow', keys }, number, room);
    return;
  }
  const keys = key.length === 1 ? key : key.filter((column) => column !== 'team_id');
  await emptyOf(db, { ...table, of: 'team_id', keys }, teamId, room);
}

/**
 * Deletes rows by their keys. `keys` must not include the column `of`, because SQLite would then read all rows that
 * have `value` in it.
 */
async function emptyOf(
  db: Sql,
  { name, of, keys, long = [] }: Pick<Table, 'name' | 'long'> & { of: string; keys: readonly string[] },
  value: Value,
  room: Room,
): Promise<void> {
  const list = keys.join(', ');
  const bytes = ['0', ...long.map((column) => `coalesce(octet_length(${column}), 0)`)].join(' + ');
  const last = keys.map((_, place) => `$${place + 2}`).join(', ');
  await inParts<Record<string, Value> & { bytes: number }>(db, room, {
    first: (rows) =>
      db.all(
        `select ${list}, ${bytes} as bytes from ${name} where ${of} = $1 order by ${list} limit $2`,
        value,
        rows,
      ),
    upTo: (row) =>
      db.run(
        `delete from ${name} where ${of} = $1 and (${list}) <= (${last})`,
        value,
        ...keys.map((column) => row[column] as Value),
      ),
  });
}

const WITHOUT_TEAM = ['instance', 'team', 'job'];

/**
 * Every table with rows of teams, including tables added to `TABLES` later. Jobs come first, because a run whose job is
 * deleted can write nothing more. Every other table comes before the tables to which it refers.
 */
export const TEAM_TABLES: readonly Table[] = [
  ...TABLES.filter(({ name }) => name === 'job'),
  ...[...INSPECTOR_TABLES].reverse(),
  ...TABLES.filter(({ name }) => !WITHOUT_TEAM.includes(name)).reverse(),
];
