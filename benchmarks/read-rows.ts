/**
 * The obvious first implementation, started with `fork`: a Fastify server that selects rows and returns them through a
 * response schema, from SQLite in a directory or from PostgreSQL at a URL. It fills its table with the records of a file,
 * and sends its URL to its parent.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fastify from 'fastify';
import { Pool } from 'pg';

interface Person {
  id: string;
  name: string;
  email: string;
  city: string;
}

const TABLE = 'create table person (seq integer primary key, id text, name text, email text, city text)';
const ROWS = 'select id, name, email, city from person order by seq';
const [where = '', file = ''] = process.argv.slice(2);
const people = JSON.parse(await readFile(file, 'utf8')) as Person[];
const rows = where.startsWith('postgres:') ? await inPostgres(where) : inSqlite(where);

const text = { type: 'string' };
const items = { type: 'object', properties: { id: text, name: text, email: text, city: text } };
const app = fastify();
app.get('/people', { schema: { response: { 200: { type: 'array', items } } } }, async () => rows());
process.once('disconnect', () => app.close());
process.send?.(await app.listen({ port: 0, host: '127.0.0.1' }));

function inSqlite(directory: string): () => unknown {
  const database = new DatabaseSync(join(directory, 'people.db'));
  database.exec(`pragma journal_mode = wal; ${TABLE}; begin`);
  const insert = database.prepare('insert into person (id, name, email, city) values (?, ?, ?, ?)');
  for (const { id, name, email, city } of people) insert.run(id, name, email, city);
  database.exec('commit');
  const select = database.prepare(ROWS);
  return () => [...select.iterate()];
}

async function inPostgres(url: string): Promise<() => Promise<unknown>> {
  const pool = new Pool({ connectionString: url });
  await pool.query(TABLE);
  const columns = [
    people.map((_, seq) => seq),
    ...(['id', 'name', 'email', 'city'] as const).map((field) => people.map((person) => person[field])),
  ];
  await pool.query(
    'insert into person select * from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[])',
    columns,
  );
  process.once('disconnect', () => void pool.end());
  return async () => (await pool.query(ROWS)).rows;
}
