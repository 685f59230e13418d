/** One migration file serves both databases. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { type Driver, listMigrations, statementsOf } from './migrations.ts';

/** The lines of SQL that a migration with these lines becomes. */
function rendered(driver: Driver, ...lines: string[]): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-migrations-'));
  try {
    writeFileSync(join(directory, '0001_notes.sql'), lines.join('\n'));
    return listMigrations(driver, directory).flatMap(({ sql }) => sql.split('\n'));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('a token becomes the type that the database uses', () => {
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

test('a mark limits a line, or the lines below it, to one database', () => {
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

test('an unknown token or database is rejected with the file name and a suggestion', () => {
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

test('a type of one database is rejected in lines for both', () => {
  assert.throws(
    () => rendered('sqlite', 'alter table job add column at bigint;'),
    /"bigint" is a type of only one database\. Use one of: \{text\}, /,
  );
  const fine = ["create table note (id {text} default 'text');  -- text", 'x bigint -- only sqlite'];
  assert.equal(rendered('sqlite', ...fine).length, 2);
});

test('migrations are numbered without gaps', () => {
  const numbers = listMigrations('sqlite').map(({ number }) => number);
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index + 1),
  );
});

test('since version 19, every new text column is compared by bytes', () => {
  for (const { name, sql } of listMigrations('postgres').filter(({ number }) => number > 18)) {
    const types = sql.replaceAll(/--.*|'[^']*'|::\w+/g, '');
    assert.doesNotMatch(types, /\btext\b(?! collate "C")/, `${name} has a text column that is not {text}`);
  }
});

test('the statements of a migration end where a semicolon is neither in a text nor in a comment', () => {
  const sql = `-- One; it's the first.
    alter table job add column note text default ';'; do $$ begin perform 1; perform 2; end $$;
    -- The end;
  `;
  assert.deepEqual(
    statementsOf(sql).map((statement) => statement.replaceAll(/--.*/g, '').trim()),
    ["alter table job add column note text default ';'", 'do $$ begin perform 1; perform 2; end $$'],
  );
});

test('the migration to agendas names every team with rows that become old', () => {
  const db = new DatabaseSync(':memory:');
  const [older, agenda] = [listMigrations('sqlite').slice(0, 23), listMigrations('sqlite')[23]];
  for (const { sql } of older) db.exec(sql);
  for (const id of ['idle', 'audited', 'inspects']) {
    db.exec(`insert into team (id, slug, created_at) values ('${id}', '${id}', 0)`);
  }
  db.exec(`
    insert into audit (team_id, id, action, actor, subject, details, created_at) values ('audited', 'aud_1', 'a', 'a', '', '{}', 0);
    insert into inspector (team_id, id, status, delay_ms, created_at, expires_at) values ('inspects', 'i', 204, 0, 0, 0)`);
  db.exec(agenda?.sql ?? '');
  const due = db.prepare('select id from team where prune_at is not null order by id').all();
  assert.deepEqual(
    due.map(({ id }) => id),
    ['audited', 'inspects'],
  );
  db.close();
});

test('the migration to rules keeps webhooks, deliveries and replays, which have no rules', () => {
  const db = new DatabaseSync(':memory:');
  const [older, rules] = [listMigrations('sqlite').slice(0, 26), listMigrations('sqlite')[26]];
  for (const { sql } of older) db.exec(sql);
  db.exec(`
    insert into team (id, slug, created_at) values ('t', 't', 0);
    insert into webhook (team_id, id, url, events, event_set, fires_for, state, secret, created_at)
      values ('t', 'wh_1', 'https://a.example', '["*"]', '["*"]', '|*|', 'active', 'sealed', 0);
    insert into event (team_id, sequence, id, type, body, created_at)
      values ('t', 1, 'evt_1', 'webhook_test', '{}', 0);
    insert into delivery (team_id, id, webhook_id, event_sequence, state, created_at, origin, class, replay_id)
      values ('t', 'dlv_1', 'wh_1', 1, 'dead', 0, 'event', 0, null), ('t', 'dlv_2', 'wh_1', 1, 'dead', 0, 'replay', 2, 'rpl_1')`);
  db.exec(rules?.sql ?? '');
  const row = (sql: string) => ({ ...db.prepare(sql).get() });
  assert.deepEqual(row('select name, rule, rule_revision, rule_mistake, rule_turn from webhook'), {
    name: null,
    rule: null,
    rule_revision: null,
    rule_mistake: null,
    rule_turn: 0,
  });
  assert.deepEqual(
    row('select count(*) as deliveries, count(body) as bodies, count(message_id) as ids from delivery'),
    {
      deliveries: 2,
      bodies: 0,
      ids: 0,
    },
  );
  const again = (messageId: string | null) =>
    db
      .prepare(
        `insert into delivery
           (team_id, id, webhook_id, event_sequence, state, created_at, origin, class, replay_id, message_id)
         values ('t', ?, 'wh_1', 1, 'dead', 0, 'replay', 2, 'rpl_1', ?)`,
      )
      .run(`dlv_${messageId}`, messageId);
  assert.throws(() => again(null), /UNIQUE/, 'a replay sends a message once');
  again('evt_late');
  assert.throws(() => again('evt_late'), /UNIQUE/);
  assert.deepEqual(row('select decisions_at from team'), { decisions_at: null });
  db.close();
});
