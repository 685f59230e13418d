/** A migration is written once, and rendered for each database. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Driver, listMigrations } from './migrations.ts';

/** What a migration with these lines is for a database. */
function rendered(driver: Driver, ...lines: string[]): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-migrations-'));
  try {
    writeFileSync(join(directory, '0001_notes.sql'), lines.join('\n'));
    return listMigrations(driver, directory).flatMap(({ sql }) => sql.split('\n'));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('a token becomes the type of the database', () => {
  const columns = ['{text}', '{time}', '{smallint}', '{integer}', '{bigint}'];
  assert.deepEqual(rendered('sqlite', ...columns), ['text', 'integer', 'integer', 'integer', 'integer']);
  assert.deepEqual(rendered('postgres', ...columns), [
    'text collate "C"',
    'bigint',
    'smallint',
    'integer',
    'bigint',
  ]);
});

test('marks say what is for one database alone, in lines and below them', () => {
  const lines = ['a', 'b;  -- only sqlite', ' -- only postgres ', 'c', 'd  -- of both kinds', '-- both', 'e'];
  assert.deepEqual(rendered('sqlite', ...lines), ['a', 'b;  -- only sqlite', '-- both', 'e']);
  assert.deepEqual(rendered('postgres', ...lines), [
    'a',
    ' -- only postgres ',
    'c',
    'd  -- of both kinds',
    '-- both',
    'e',
  ]);
});

test('a token or database that does not exist is refused with the file and the nearest name', () => {
  assert.throws(
    () => rendered('sqlite', 'alter table job add column note {txet};'),
    /^Error: 0001_notes\.sql: unknown name "txet"\. Did you mean "text"\?$/,
  );
  assert.throws(
    () => rendered('sqlite', 'drop table job;  -- only postgresql'),
    /"postgresql"\. Did you mean "postgres"\?$/,
  );
  assert.throws(() => rendered('postgres', '{date}'), /Known names: text, old_text, time, /);
});

test('the type of one database is refused in what is for all', () => {
  assert.throws(
    () => rendered('sqlite', 'alter table job add column at bigint;'),
    /"bigint" is a type of one database\. Types for both: \{text\}, /,
  );
  const fine = ["create table note (id {text} default 'text');  -- text", 'x bigint -- only sqlite'];
  assert.equal(rendered('sqlite', ...fine).length, 2);
});

test('migrations are numbered one after the other', () => {
  const numbers = listMigrations('sqlite').map(({ number }) => number);
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index + 1),
  );
});

test('since version 19 every new text is compared by bytes', () => {
  for (const { name, sql } of listMigrations('postgres').filter(({ number }) => number > 18)) {
    const types = sql.replaceAll(/--.*|'[^']*'|::\w+/g, '');
    assert.doesNotMatch(types, /\btext\b(?! collate "C")/, `${name} has a text that is not {text}`);
  }
});
