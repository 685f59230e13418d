/** Both databases have the same tables. The intended differences are listed here. */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import pg from 'pg';
import { makeDatabase } from '../../test/support/postgres.ts';
import { listMigrations } from './migrations.ts';

const sqlite = new DatabaseSync(':memory:');
for (const { sql } of listMigrations('sqlite')) sqlite.exec(sql);
const { url, drop } = await makeDatabase();
const postgres = new pg.Client({ connectionString: url });
await postgres.connect();
for (const { sql } of listMigrations('postgres')) await postgres.query(sql);
after(async () => {
  await postgres.end();
  await drop();
});

/** The intended differences: the reason, the lines only in SQLite, and the lines only in PostgreSQL. */
const INTENDED: [reason: string, sqlite: string[], postgres: string[]][] = [
  ['Only on PostgreSQL do several nodes share chores and webhooks.', [], ['chore', 'lane']],
  [
    'A record of SQLite names its workflow by a small number, so that its five B-trees are smaller.',
    [
      'record.workflow integer not null',
      'record: primary key (workflow, seq, added_in)',
      'workflow.number integer not null',
      'workflow: unique (number)',
    ],
    [
      'record.team_id text not null',
      'record.workflow_id text not null',
      'record: primary key (team_id, workflow_id, seq, added_in)',
    ],
  ],
  [
    'On SQLite, an event of a queued job is added to this index only when the job starts.',
    ['event.indexed integer not null default 1', 'event: index event_workflow of some rows'],
    ['event: index event_workflow'],
  ],
  [
    'In a distributed database, a key is on every node, and its team on one of them.',
    ['api_key', 'session', 'sign_in_link'].map((table) => `${table}: team_id references team no action`),
    [],
  ],
  [
    'Webhooks of version 2 had no settings; PostgreSQL starts with version 3.',
    [`webhook.settings text not null default '{"ordered":false,"ratePerSecond":null,"timeoutMs":15000}'`],
    ['webhook.settings text not null'],
  ],
];

test('columns, keys, references, check counts and index names are the same except for intended differences', async () => {
  const [lines, others] = [ofSqlite(), await ofPostgres()];
  assert.deepEqual(
    [onlyIn(lines, others), onlyIn(others, lines)],
    [INTENDED.flatMap(([, sqlite]) => sqlite).sort(), INTENDED.flatMap(([, , postgres]) => postgres).sort()],
  );
});

test('keys and indexes of PostgreSQL compare text by bytes, as SQLite does', async () => {
  const { rows } = await postgres.query<{ otherwise: string }>(
    `select indexrelid::regclass || ': ' || pg_get_indexdef(indexrelid, number::integer, true) as otherwise
     from pg_index join pg_class on pg_class.oid = indexrelid
     cross join unnest(indcollation) with ordinality as part (collation_id, number)
     where relnamespace = 'public'::regnamespace
       and collation_id <> 0 and collation_id <> 'pg_catalog."C"'::regcollation
     order by 1`,
  );
  // Values that the service defines and compares only for equality.
  assert.deepEqual(
    rows.map(({ otherwise }) => otherwise),
    ["delivery_history: (state || ''::text)", 'quota_pkey: name', 'suppression_pkey: kind'],
  );
});

/** The sorted lines that `others` lacks; only the name of a table that `others` lacks entirely. */
function onlyIn(lines: readonly string[], others: readonly string[]): string[] {
  const tableOf = (line: string) => /^\w+/.exec(line)?.[0] ?? '';
  const tables = others.map(tableOf);
  const more = lines.filter((line) => !others.includes(line));
  return [...new Set(more.map((line) => (tables.includes(tableOf(line)) ? line : tableOf(line))))].sort();
}

/** One line for each column, key, reference and index of each table, and one with the number of its checks. */
function ofSqlite(): string[] {
  const ask = <Row>(sql: string, ...values: string[]) => sqlite.prepare(sql).all(...values) as Row[];
  const tables = ask<{ table: string; sql: string }>(
    `select name as "table", sql from sqlite_schema where type = 'table'`,
  );
  return tables.flatMap(({ table, sql }) => [
    `${table}: ${sql.replaceAll(/--.*/g, '').match(/\bcheck \(/g)?.length ?? 0} checks`,
    // SQLite lists a primary key as nullable unless its column is declared `not null`.
    ...ask<Column>(
      `select name, lower(type) as type, "notnull" or pk > 0 as required, dflt_value as "default"
       from pragma_table_info(?)`,
      table,
    ).map((one) => column(table, one)),
    ...ask<{ line: string }>(
      `select group_concat("from", ', ' order by seq) || ' references ' || "table" || ' ' || lower(on_delete) as line
       from pragma_foreign_key_list(?) group by id`,
      table,
    ).map(({ line }) => `${table}: ${line}`),
    ...ask<Index>(
      `select name, "unique", partial, origin,
              (select group_concat(name, ', ') from pragma_index_xinfo(list.name) where key = 1) as columns
       from pragma_index_list(?) list`,
      table,
    ).map((one) => index(table, one)),
  ]);
}

async function ofPostgres(): Promise<string[]> {
  const ask = async <Row extends pg.QueryResultRow>(sql: string) =>
    (await postgres.query<Row & { table: string }>(sql)).rows;
  const ofTables = "relkind = 'r' and relnamespace = 'public'::regnamespace";
  const columns = await ask<Column>(
    `select relname as table, attname as name, attnotnull as required, pg_get_expr(adbin, adrelid) as default,
            case when atttypid in ('smallint'::regtype, 'bigint'::regtype) then 'integer' else format_type(atttypid, null) end as type
     from pg_class join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
     left join pg_attrdef on adrelid = attrelid and adnum = attnum
     where ${ofTables}`,
  );
  const constraints = await ask<{ checks: number; references: string[] }>(
    `select relname as table, count(*) filter (where contype = 'c')::integer as checks,
            coalesce(array_agg(columns || ' references ' || confrelid::regclass || ' ' ||
                               case confdeltype when 'c' then 'cascade' else 'no action' end)
                     filter (where contype = 'f'), '{}') as references
     from pg_class left join pg_constraint on conrelid = pg_class.oid
     left join lateral (select string_agg(attname, ', ' order by number)
                        from unnest(conkey) with ordinality as part (attribute, number)
                        join pg_attribute on attrelid = conrelid and attnum = attribute) as named (columns) on true
     where ${ofTables} group by relname`,
  );
  const indexes = await ask<Index>(
    `select relname as table, indexrelid::regclass as name, indisunique as unique, indpred is not null as partial,
            case contype when 'p' then 'pk' when 'u' then 'u' end as origin,
            (select string_agg(attname, ', ' order by number)
             from unnest(indkey) with ordinality as part (attribute, number)
             join pg_attribute on attrelid = indrelid and attnum = attribute) as columns
     from pg_class join pg_index on indrelid = pg_class.oid
     left join pg_constraint on conindid = indexrelid and contype in ('p', 'u')
     where ${ofTables}`,
  );
  return [
    ...columns.map((one) => column(one.table, one)),
    ...constraints.flatMap(({ table, checks, references }) => [
      `${table}: ${checks} checks`,
      ...references.map((line) => `${table}: ${line}`),
    ]),
    ...indexes.map((one) => index(one.table, one)),
  ];
}

interface Column {
  name: string;
  type: string;
  required: boolean | number;
  default: string | null;
}

function column(table: string, one: Column): string {
  // PostgreSQL appends the type: '-1'::integer.
  const value = one.default?.replace(/::\w+$/, '').replace(/^'(-?\d+)'$/, '$1');
  return `${table}.${one.name} ${one.type}${one.required ? ' not null' : ''}${value ? ` default ${value}` : ''}`;
}

interface Index {
  name: string;
  unique: boolean | number;
  partial: boolean | number;
  /** `pk` for the index of a primary key, `u` for the index of a unique constraint. */
  origin: string | null;
  columns: string;
}

/** An index without a constraint is compared by name only: each database indexes other columns. */
function index(table: string, one: Index): string {
  if (one.origin === 'pk') return `${table}: primary key (${one.columns})`;
  if (one.origin === 'u') return `${table}: unique (${one.columns})`;
  return `${table}: ${one.unique ? 'unique ' : ''}index ${one.name}${one.partial ? ' of some rows' : ''}`;
}
