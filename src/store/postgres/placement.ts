/**
 * Where the tables of a database on Citus are. Every node has the tables of `ON_EVERY_NODE`. Each other table with a
 * `team_id`, and `team` itself, is distributed by it, so that all rows of a team are on one node. The rest stays on the
 * coordinator.
 */
import { ON_EVERY_NODE } from '../copy/tables.ts';
import type { Sql } from '../sql.ts';

export type Place = 'by team' | 'every node' | 'coordinator';

export interface PlacedTable {
  name: string;
  /** Where the table is now. */
  now: Place;
  /** Where it belongs in a distributed database. */
  home: Place;
}

/** The first table that is distributed. Rows of other tables are on the node of their team. */
const TEAM = 'team';

/**
 * Citus can only check that values are unique within a team. Without this constraint, `teams.ensure` keeps slugs unique
 * by a lock.
 */
const SLUGS = {
  release: 'alter table team drop constraint team_slug_key; create index team_slug on team (slug)',
  restore: 'drop index team_slug; alter table team add constraint team_slug_key unique (slug)',
};

/** Returns tables in the order in which they are distributed: rows of the first ones are referred to by others. */
export async function placesOf(db: Sql, names: readonly string[]): Promise<PlacedTable[]> {
  const found = await db.all<{ name: string; now: Place; hasTeam: boolean }>(
    `select relname as name, exists (select 1 from pg_attribute where attrelid = pg_class.oid and attname = 'team_id') as "hasTeam",
            case when partmethod = 'h' then 'by team' when repmodel = 't' then 'every node' else 'coordinator' end as now
     from pg_class left join pg_dist_partition on logicalrelid = pg_class.oid
     where relkind = 'r' and relnamespace = current_schema()::regnamespace and relname = any ($1)
     order by pg_class.oid`,
    names,
  );
  const rank = ({ name, home }: PlacedTable) => (home === 'by team' ? (name === TEAM ? 1 : 2) : 0);
  return found
    .map(({ name, now, hasTeam }): PlacedTable => ({ name, now, home: placeOf(name, hasTeam) }))
    .sort((one, other) => rank(one) - rank(other));
}

function placeOf(name: string, hasTeam: boolean): Place {
  if (ON_EVERY_NODE.includes(name)) return 'every node';
  return hasTeam || name === TEAM ? 'by team' : 'coordinator';
}

export async function tableNames(db: Sql): Promise<string[]> {
  const found = await db.all<{ name: string }>(
    `select relname as name from pg_class
     where relkind = 'r' and relnamespace = current_schema()::regnamespace and relispartition = false`,
  );
  return found.map(({ name }) => name);
}

/** Moves a table from the coordinator to where it belongs. */
export async function place(db: Sql, { name, now, home }: PlacedTable): Promise<void> {
  if (now === home) return;
  if (home === 'every node') await db.get('select create_reference_table($1)', name);
  else {
    const isTeam = name === TEAM;
    if (isTeam) await runEach(db, SLUGS.release);
    const [column, beside] = isTeam ? ['id', 'none'] : ['team_id', TEAM];
    await db.get('select create_distributed_table($1, $2, colocate_with => $3)', name, column, beside);
  }
  await dropLocalRows(db);
}

/**
 * Deletes the rows that the coordinator still has of tables that were moved. Rows that a table refers to can be deleted
 * only when that table was moved as well.
 */
async function dropLocalRows(db: Sql): Promise<void> {
  await db.all(
    `select truncate_local_data_after_distributing_table(moved.logicalrelid) from pg_dist_partition moved
     where (moved.partmethod = 'h' or moved.repmodel = 't') and pg_relation_size(moved.logicalrelid) > 0
       and not exists (
         select 1 from pg_constraint left join pg_dist_partition other on other.logicalrelid = conrelid
         where contype = 'f' and confrelid = moved.logicalrelid
           and (other.logicalrelid is null or (other.partmethod <> 'h' and other.repmodel <> 't')))`,
  );
}

/** Moves a table, and those that refer to it, back to the coordinator. */
export async function bringBack(db: Sql, name: string): Promise<void> {
  await db.get('select undistribute_table($1, cascade_via_foreign_keys => true)', name);
  if (name === TEAM) await runEach(db, SLUGS.restore);
}

async function runEach(db: Sql, statements: string): Promise<void> {
  for (const statement of statements.split(';')) await db.run(statement);
}

/** Whether the tables of this database are distributed. */
export async function isDistributed(db: Sql): Promise<boolean> {
  const has = await db.get<{ citus: boolean }>(
    `select to_regclass('pg_catalog.pg_dist_partition') is not null as citus`,
  );
  if (has?.citus !== true) return false;
  const found = await db.get<{ there: boolean }>(
    `select exists (select 1 from pg_dist_partition where logicalrelid = to_regclass('${TEAM}')) as there`,
  );
  return found?.there === true;
}

/** In this transaction, Citus changes one shard after the other, so that every kind of table can be changed in it. */
export async function changeShardsInTurn(db: Sql): Promise<void> {
  await db.run(`set local citus.multi_shard_modify_mode = 'sequential'`);
}
