/**
 * Distributes the tables of a PostgreSQL database over the nodes of a Citus cluster, and brings them back. Each table is
 * moved in a transaction of its own: an interrupted run continues where it ended. Meanwhile the database has a marker,
 * with which no node opens it.
 */
import { InUseError } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { LEFT_BEHIND, MARKER, MOVING, refusalOf, TABLES } from '../copy/tables.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';
import { unusable } from './failures.ts';
import { bringBack, changeShardsInTurn, type PlacedTable, place, placesOf } from './placement.ts';
import { nodesUsing } from './whole.ts';

/** Maximum time for a statement. It is enough to move a large table. */
const STATEMENT_MS = 24 * 3_600_000;

const OURS = [...TABLES.map(({ name }) => name), ...LEFT_BEHIND];

export interface MovedTable extends PlacedTable {
  rows: number;
  /** With its indexes. */
  bytes: number;
}

export interface Distribution {
  /**
   * Why the tables of this database cannot be moved, as a sentence with the next step; undefined if they can. To be
   * brought back, they need no other server: an interrupted move may have moved nothing.
   */
  obstacle(input: { isUndo: boolean }): Promise<string | undefined>;
  /** A sentence about nodes that use the database; undefined if none is known to. */
  nodesUsing(): Promise<string | undefined>;
  /** Counts the rows of all tables. */
  tables(): Promise<MovedTable[]>;
  /**
   * Moves all tables that are not yet where they belong.
   *
   * @param input.shards the number of parts into which teams are divided; fixed once the first table is distributed
   * @param input.onMoved called after each table, also for those that needed no move
   */
  move(input: {
    to: 'nodes' | 'coordinator';
    shards: number;
    onMoved: (name: string) => void;
  }): Promise<void>;
  close(): Promise<void>;
}

/** @throws Problem if the database cannot be reached */
export async function openDistribution({ url, log }: { url: string; log: Logger }): Promise<Distribution> {
  const pool = openPool({ url, size: 2, log, answerMs: STATEMENT_MS });
  const db = new Database(pool);
  /** Runs `change` in a transaction, after all others that move tables: also that of a process that was killed. */
  const inTurn = <Result>(change: (db: Database) => Promise<Result>) =>
    inTransaction(
      pool,
      async (db) => {
        await db.exec('lock table schema_version in exclusive mode');
        return change(db);
      },
      { statementMs: STATEMENT_MS, lockMs: 0 },
    );
  try {
    await db.get('select 1');
  } catch (error) {
    await pool.end();
    throw unusable(error);
  }
  return {
    obstacle: ({ isUndo }) => obstacle(db, isUndo),
    nodesUsing: () => inTransaction(pool, nodesUsing),
    tables: () => inTransaction(pool, sizes, { statementMs: STATEMENT_MS }),
    async move(input) {
      await mark(db);
      try {
        await moveAll(db, inTurn, input);
      } catch (error) {
        throw new Error(`${reasonOf(error)}. ${refusalOf(MOVING)}`, { cause: error });
      }
    },
    close: () => pool.end(),
  };
}

type InTurn = <Result>(change: (db: Database) => Promise<Result>) => Promise<Result>;

async function moveAll(
  db: Database,
  inTurn: InTurn,
  { to, shards, onMoved }: Parameters<Distribution['move']>[0],
): Promise<void> {
  for (const table of await placesOf(db, OURS)) {
    await inTurn(async (db) => {
      // Another process may have moved it meanwhile.
      const [current = table] = await placesOf(db, [table.name]);
      if (to === 'coordinator') {
        if (current.now !== 'coordinator') await bringBack(db, table.name);
        return;
      }
      await db.run(`set local citus.shard_count = ${Math.floor(shards)}`);
      await place(db, current);
    });
    await db.exec(`analyze ${table.name}`);
    onMoved(table.name);
  }
  await inTurn(async (db) => {
    await changeShardsInTurn(db);
    await db.run('delete from instance where name = $1', MARKER);
  });
}

/** The message of an error, on one line. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replaceAll(/\s+/g, ' ').replace(/[.?\s]+$/, '');
}

async function mark(db: Database): Promise<void> {
  await db.run('insert into instance (name, value) values ($1, $2) on conflict do nothing', MARKER, MOVING);
  const value = (await db.get<{ value: string }>('select value from instance where name = $1', MARKER))
    ?.value;
  if (value !== MOVING)
    throw new InUseError('This database is an unfinished copy, which cannot be distributed');
}

/** The rows and bytes of each table, wherever they are. */
async function sizes(db: Database): Promise<MovedTable[]> {
  const tables: MovedTable[] = [];
  for (const table of await placesOf(db, OURS)) {
    const size = table.now === 'coordinator' ? 'pg_total_relation_size' : 'citus_total_relation_size';
    const counted = await db.get<{ rows: number; bytes: number }>(
      `select (select count(*) from ${table.name}) as rows, ${size}('${table.name}') as bytes`,
    );
    tables.push({ ...table, rows: counted?.rows ?? 0, bytes: counted?.bytes ?? 0 });
  }
  return tables;
}

async function obstacle(db: Database, isUndo: boolean): Promise<string | undefined> {
  const has = await db.get<{ citus: boolean }>(
    `select to_regclass('pg_catalog.pg_dist_partition') is not null as citus`,
  );
  if (has?.citus !== true) {
    return (
      'This database does not have the extension Citus. Install Citus on each server of the cluster, add it to ' +
      'shared_preload_libraries, and run `create extension citus` in a database of this name on each server'
    );
  }
  const nodes = await db.get<{ local: number; coordinator: number; workers: number }>(
    `select (select groupid from pg_dist_local_group limit 1) as local,
            (select count(*) from pg_dist_node where groupid = 0) as coordinator,
            (select count(*) from pg_dist_node where groupid <> 0 and isactive and noderole = 'primary') as workers`,
  );
  if (nodes?.local !== 0)
    return 'This server is a worker of the cluster. Name the coordinator in FLOWHOOK_DATABASE';
  if (nodes.coordinator === 0 && !isUndo) {
    return "Citus does not know this server's address. Run `select citus_set_coordinator_host('host', 5432)` with it";
  }
  if (nodes.workers === 0 && !isUndo) {
    return "The cluster has no workers. Add each of them with `select citus_add_node('host', 5432)`";
  }
  const [others] = await db.all<{ name: string }>(
    `select relname as name from pg_class
     where relname = any ($1) and relnamespace = current_schema()::regnamespace and not pg_has_role(relowner, 'usage') limit 1`,
    OURS,
  );
  if (others !== undefined) {
    return `The user of this URL does not own the table ${others.name}. Use the owner of Flowhook's tables`;
  }
  return undefined;
}
