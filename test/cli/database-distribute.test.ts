/** `flowhook database distribute`: the rows stay the same, and a server runs on them. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import pg from 'pg';
import { silentLogger } from '../../src/observe/log.ts';
import { MIGRATIONS, newestSchema } from '../../src/store/migrations.ts';
import { openStore } from '../../src/store/open.ts';
import { openPool } from '../../src/store/postgres/connections.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { type CitusDatabase, NO_CITUS, startCitus, testCitus } from '../support/citus.ts';
import { type Ended, runCommand, startCommand } from '../support/cli/commands.ts';
import { administer, makeDatabase } from '../support/postgres.ts';
import { frozenRows } from '../support/store/frozen-schemas.ts';
import { makeOldTables, type OldTables } from '../support/store/old-tables.ts';
import { until } from '../support/until.ts';

const ON_CITUS = { skip: NO_CITUS };
const directory = await mkdtemp(join(tmpdir(), 'flowhook-distribute-'));
after(() => rm(directory, { recursive: true, force: true }));

const environmentOf = (url: string) => ({
  PATH: process.env.PATH ?? '',
  FLOWHOOK_DATABASE: url,
  FLOWHOOK_DATA: join(directory, 'data'),
});

function distribute(url: string, ...more: string[]): Promise<Ended> {
  return runCommand(['database', 'distribute', ...more], { directory, environment: environmentOf(url) });
}

async function distributed(url: string, ...more: string[]): Promise<Record<string, string>> {
  const { code, stdout, stderr } = await distribute(url, '--yes', '--json', '--shards', '4', ...more);
  assert.equal(code, 0, stderr);
  const { tables } = JSON.parse(stdout) as { tables: { name: string; now: string }[] };
  return Object.fromEntries(tables.map(({ name, now }) => [name, now]));
}

/** Tables with the rows of a real service, not distributed. */
async function filled(
  t: TestContext,
): Promise<{ database: CitusDatabase; tables: OldTables; client: pg.Client }> {
  const database = await (await testCitus()).makeDatabase();
  const client = new pg.Client({ connectionString: database.url });
  t.after(async () => {
    await client.end();
    await database.drop();
  });
  const tables = await makeOldTables('postgres', { directory, migrations: MIGRATIONS }, database);
  await tables.insert(frozenRows('postgres', 20, 'http://127.0.0.1:9'));
  await client.connect();
  return { database, tables, client };
}

async function sorted(tables: OldTables): Promise<Record<string, string[]>> {
  const rows = [...(await tables.read())].map(
    ([name, list]) => [name, list.map((row) => JSON.stringify(row)).sort()] as const,
  );
  return Object.fromEntries(rows.sort());
}

/** The columns, indexes, constraints and settings of all tables. */
async function shapeOf(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(`
    select indrelid::regclass || ' ' || pg_get_indexdef(indexrelid) as line
      from pg_index join pg_class on pg_class.oid = indrelid where relnamespace = 'public'::regnamespace
    union all select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
      from pg_constraint where connamespace = 'public'::regnamespace
    union all select oid::regclass || ' ' || coalesce(reloptions::text, '')
      from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
    union all select concat_ws(' ', attrelid::regclass, attname, format_type(atttypid, atttypmod), attcollation::regcollation,
        attnotnull, attstattarget, (select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = attrelid and adnum = attnum))
      from pg_attribute join pg_class on pg_class.oid = attrelid
      where relkind = 'r' and attnum > 0 and not attisdropped and relnamespace = 'public'::regnamespace
    order by 1`);
  return rows.map(({ line }) => line);
}

test('a database is distributed by team, and brought back as it was', ON_CITUS, async (t) => {
  const { database, tables, client } = await filled(t);
  const [rows, shape] = [await sorted(tables), await shapeOf(client)];

  const asked = await distribute(database.url);
  assert.equal(asked.code, 2);
  assert.match(asked.stderr, /record: \d+ rows, .* coordinator → by team\n/);
  assert.match(asked.stderr, /api_key: \d+ rows?, .* coordinator → every node\n/);
  assert.match(
    asked.stderr,
    /distributed in 32 shards\. This takes about .*bring them back, run `flowhook database distribute --undo`/,
  );

  const places = await distributed(database.url);
  const at = (place: string) => Object.keys(places).filter((name) => places[name] === place);
  assert.deepEqual(at('every node').sort(), ['api_key', 'instance', 'session', 'sign_in_link']);
  assert.deepEqual(at('coordinator').sort(), ['chore', 'schema_version']);
  const { rows: groups } = await client.query(
    `select distinct colocation_id from citus_tables where citus_table_type = 'distributed'`,
  );
  assert.equal(groups.length, 1, 'all rows of a team are on one node');
  assert.deepEqual(await sorted(tables), rows);
  await (await openStore(database.url, { publicUrl: () => '', log: silentLogger })).close();

  const again = await distribute(database.url, '--yes');
  assert.match(again.stdout, /^0 tables moved/);

  assert.deepEqual(
    new Set(Object.values(await distributed(database.url, '--undo'))),
    new Set(['coordinator']),
  );
  assert.deepEqual(await sorted(tables), rows);
  assert.deepEqual(await shapeOf(client), shape);
});

test(
  'a distribution and its undoing that were killed continue, and no server starts meanwhile',
  ON_CITUS,
  async (t) => {
    const { database, tables, client } = await filled(t);
    const [rows, shape] = [await sorted(tables), await shapeOf(client)];
    await killAt('job', database, client);
    const places = await distributed(database.url);
    assert.equal(places.workflow, 'by team');
    assert.equal(places.job, 'by team');
    assert.deepEqual(await sorted(tables), rows);

    for (const table of ['team', 'session', 'schema_version'])
      await killAt(table, database, client, '--undo');
    await distributed(database.url, '--undo');
    assert.deepEqual(await sorted(tables), rows);
    assert.deepEqual(await shapeOf(client), shape);
  },
);

/** Kills the command while it waits for a table. */
async function killAt(
  table: string,
  database: CitusDatabase,
  client: pg.Client,
  ...more: string[]
): Promise<void> {
  await client.query(`begin; lock table ${table} in share mode`);
  const killed = startCommand(['database', 'distribute', '--yes', '--shards', '4', ...more], {
    directory,
    environment: environmentOf(database.url),
  });
  await waitsForLock(database);
  killed.process.kill('SIGKILL');
  await killed.ended;
  await client.query('rollback');
  await assert.rejects(
    openStore(database.url, { publicUrl: () => '', log: silentLogger }),
    /distributed only in part\. Run `flowhook database distribute` again/,
  );
}

/** Resolves when a statement waits for a table. */
async function waitsForLock({ server, name }: CitusDatabase): Promise<void> {
  const other = new pg.Client({ connectionString: server });
  await other.connect();
  const waits = `select 1 from pg_stat_activity where datname = '${name}' and wait_event_type = 'Lock'`;
  await until('it waits for the table', async () => (await other.query(waits)).rows.length > 0);
  await other.end();
}

test('a node that starts while the tables are counted is noticed', ON_CITUS, async (t) => {
  const { database, client } = await filled(t);
  await client.query('begin; lock table job in access exclusive mode');
  const ended = distribute(database.url, '--yes');
  await waitsForLock(database);
  const lease = `insert into chore values ('c', 'node_x', extract(epoch from now()) * 1000 + 600000)`;
  await client.query(`rollback; ${lease}`);
  const { code, stderr } = await ended;
  assert.match(stderr, /Nodes are using the database \(1 leases.*run the command again/);
  assert.equal(code, 5);
  await (await openStore(database.url, { publicUrl: () => '', log: silentLogger })).close();
});

test('a move that fails says what to do, and is undone without the workers', ON_CITUS, async (t) => {
  const cluster = await startCitus();
  const database = await cluster.makeDatabase();
  const client = new pg.Client({ connectionString: database.url });
  t.after(async () => {
    await client.end();
    await cluster.stop();
  });
  const open = () => openStore(database.url, { publicUrl: () => '', log: silentLogger, listen: false });
  await (await open()).close();
  await client.connect();
  await cluster.workers[1]?.stop();
  const { code, stderr } = await distribute(database.url, '--yes');
  assert.equal(code, 1);
  assert.match(
    stderr,
    /connection to the remote node .*failed.*Run `flowhook database distribute` again, or `flowhook database distribute --undo`\n$/,
  );
  await client.query('update pg_dist_node set isactive = false where groupid <> 0');
  assert.equal((await distribute(database.url, '--yes', '--undo')).code, 0);
  await (await open()).close();
});

test(
  'a migration of a distributed database changes its tables and distributes new ones',
  ON_CITUS,
  async (t) => {
    const { database, client } = await filled(t);
    await distributed(database.url);
    const migrations = join(directory, 'migrations');
    await cp(MIGRATIONS, migrations, { recursive: true });
    const number = newestSchema() + 1;
    await writeFile(
      join(migrations, `${String(number).padStart(4, '0')}_notes.sql`),
      `alter table job add column note {text};
     update job set note = state;
     create index job_note on job (team_id, note);
     alter table team add column note {text};
     update team set note = slug;
     create table note (team_id {text} not null, id {text} not null, note {text} not null, primary key (team_id, id));
     insert into note select team_id, id, note from job;
     create table global_note (id {text} primary key);`,
    );
    const pool = openPool({ url: database.url, size: 1, log: silentLogger });
    t.after(() => pool.end());
    await migrate({ url: database.url, pool, log: silentLogger, directory: migrations });
    const { rows } = await client.query(
      `select (select count(*) from job where note = state)::integer as changed,
            (select count(*) from job)::integer as jobs, (select count(*) from note)::integer as notes`,
    );
    assert.ok(rows[0].jobs > 0);
    assert.deepEqual(rows[0], { changed: rows[0].jobs, jobs: rows[0].jobs, notes: rows[0].jobs });
    const { rows: types } = await client.query(
      `select table_name::text as name, citus_table_type as type, colocation_id = (
       select colocation_id from citus_tables where table_name = 'job'::regclass) as beside
     from citus_tables where table_name::text like '%note'`,
    );
    assert.deepEqual(types, [{ name: 'note', type: 'distributed', beside: true }]);
  },
);

test('the command says why a cluster cannot be used', ON_CITUS, async (t) => {
  const { database, client } = await filled(t);
  const refused = async (sentence: RegExp, url = database.url) => {
    const { code, stderr } = await distribute(url, '--yes');
    assert.match(stderr, sentence);
    assert.equal(code, 5);
  };
  await client.query(`insert into chore values ('c', 'node_x', extract(epoch from now()) * 1000 + 60000)`);
  await refused(/Nodes are using the database \(1 leases/);
  await client.query('delete from chore');
  await refused(/is a worker of the cluster\. Name the coordinator/, database.workers[0]);
  const empty = await (await testCitus()).makeDatabase();
  t.after(empty.drop);
  await refused(/schema is at version 0.*`flowhook migrate up`/, empty.url);

  await administer(
    database.url,
    `create role reader login; grant all on all tables in schema public to reader`,
  );
  const reader = new URL(database.url);
  reader.username = 'reader';
  await refused(/does not own the table/, reader.href);

  await client.query(`select citus_remove_node(nodename, nodeport) from pg_dist_node where groupid <> 0`);
  await refused(/The cluster has no workers/);
  await client.query(`select citus_remove_node(nodename, nodeport) from pg_dist_node`);
  await refused(/citus_set_coordinator_host/);
});

test('a database without the extension, or of SQLite, is not distributed', async (t) => {
  const { url, drop } = await makeDatabase();
  t.after(drop);
  const plain = await distribute(url, '--yes');
  assert.equal(plain.code, 5);
  assert.match(plain.stderr, /does not have the extension Citus.*create extension citus/);
  const sqlite = await distribute(`sqlite:${join(directory, 'some.db')}`, '--yes');
  assert.equal(sqlite.code, 2);
  assert.match(sqlite.stderr, /Only PostgreSQL .*`flowhook database copy`/);
  assert.equal((await distribute(url, '--yes', '--shards', '0')).code, 2);
});
