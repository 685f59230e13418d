/** Every command that `flowhook doctor` recommends exists, and its page lists every check. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CHECKS } from '../doctor/checks.ts';
import { programOf } from '../main.ts';
import { leavesOf } from './help.ts';

const DOCTOR = join(import.meta.dirname, '..', 'doctor');

test('every command and flag that a finding recommends exists', async () => {
  const leaves = leavesOf(await programOf(undefined));
  const sources = readdirSync(DOCTOR).filter((name) => !name.endsWith('.test.ts'));
  const named = sources.flatMap((name) => [
    ...readFileSync(join(DOCTOR, name), 'utf8').matchAll(/`flowhook ([^`]+?)\\?`/g),
  ]);
  assert.ok(named.length > 15, 'commands were found');
  for (const [, words = ''] of named) {
    const leaf = leaves.find(({ path }) => words === path || words.startsWith(`${path} `));
    assert.ok(leaf !== undefined, `flowhook ${words} does not exist`);
    const known = leaf.command.options.map(({ long }) => long);
    for (const flag of words.match(/--[a-z-]+/g) ?? []) assert.ok(known.includes(flag), `${words}: ${flag}`);
  }
});

test('the page about doctor lists every check', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operate/doctor.md'), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const names = rows.flatMap((row) => (row.split('|')[1] ?? '').match(/[a-z-]+/g) ?? []);
  assert.deepEqual(
    names,
    CHECKS.map(({ name }) => name),
  );
});
