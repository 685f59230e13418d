/** History from the command line: one command says which prices changed, another what happened to one record. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makePlace } from '../support/cli/place.ts';

test('one command lists the changes of a field since a day, another the changes of a record', async (t) => {
  const place = await makePlace(t, { 'default/prices.yaml': 'source: { type: push }\nkeep: { days: 90 }\n' });
  assert.equal((await place.run('apply')).code, 0);
  for (const rows of [
    [
      { id: 'a', price: 1, stock: 5 },
      { id: 'b', price: 2 },
    ],
    [{ id: 'a', price: 1, stock: 4 }, { id: 'b', price: 3 }, { id: 'c' }],
  ]) {
    const file = join(place.directory, 'prices.json');
    await writeFile(file, JSON.stringify(rows));
    const imported = await place.run('data', 'import', file, '--workflow', 'prices');
    assert.equal(imported.code, 0, imported.stderr);
  }
  const changes = (...args: string[]) => place.run('data', 'changes', 'prices', ...args);
  const b = { type: 'changed', id: 'b', version: 2, fields: [{ key: 'price', value: 3, previousValue: 2 }] };
  const lines = await changes('--since', '1', '--field', 'price');
  assert.deepEqual([lines.stdout, lines.stderr], [`${JSON.stringify(b)}\n`, '']);
  const all = await changes('--since', 'tuesday', '--field', 'price', '--json');
  assert.deepEqual(
    (JSON.parse(all.stdout) as { id: string }[]).map(({ id }) => id),
    ['a', 'b'],
  );
  assert.equal(all.stderr, 'changes from version 0 to 2\n');
  const table = await changes('--since', '1', '--type', 'changed,added', '--csv');
  assert.equal(
    table.stdout,
    'type,id,version,field,value,previousValue\r\nchanged,a,2,stock,4,5\r\nchanged,b,2,price,3,2\r\nadded,c,2,,,\r\n',
  );
  for (const args of [
    ['--since', 'tusday'],
    ['--since', '1', '--type', 'gone'],
    ['--since', '1', '--csv', '--json'],
  ]) {
    assert.equal((await changes(...args)).code, 2, args.join(' '));
  }

  const history = await place.run('data', 'history', 'prices', 'b');
  assert.match(history.stdout, /^2 +2\S+ +changed +price: 2 → 3\n1 +2\S+ +added +\{"id":"b","price":2\}\n$/m);
  const json = await place.run('data', 'history', 'prices', 'b', '--json');
  assert.equal((JSON.parse(json.stdout) as unknown[]).length, 2);
  const unknown = await place.run('data', 'history', 'prices', 'none');
  assert.equal(unknown.code, 3);
  assert.match(unknown.stderr, /No version of prices that is stored has a record "none"/);

  const incomplete = await changes('--since', '1', '--filter', 'price >');
  assert.match(incomplete.stderr, /^flowhook: --filter: The expression is incomplete/);
  const misspelled = await changes('--since', '1', '--field', 'prize');
  assert.deepEqual([misspelled.code, misspelled.stdout], [0, '']);
  assert.match(
    misspelled.stderr,
    /No record of the newest versions has a field "prize"\. Did you mean price\?/,
  );
  const shown = await place.run('workflows', 'show', 'prices');
  assert.match(
    shown.stdout,
    /^keeps +10,000 versions, for 90 days\nhistory +2 versions since 2.* B for what/m,
  );
  const old = await place.run('data', 'get', 'prices', '--version', '1');
  assert.equal(old.code, 2);
  assert.match(old.stderr, /unknown option '--version'/);
});
