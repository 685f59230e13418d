/** The page of all settings is what the table says. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { environmentName } from './names.ts';
import { settingsReference } from './reference.ts';
import { SETTINGS } from './settings.ts';

test('docs/reference/settings.md is what the table says', () => {
  const page = join(import.meta.dirname, '..', '..', 'docs', 'reference', 'settings.md');
  assert.equal(
    readFileSync(page, 'utf8'),
    settingsReference,
    'docs/reference/settings.md is stale: run `npm run reference` and commit what it writes',
  );
});

test('every setting is there by each of its names, with what it must be', () => {
  for (const { name, expected, sentence } of SETTINGS) {
    const row = settingsReference.split('\n').find((line) => line.startsWith(`| \`${name}\``)) ?? '';
    assert.match(row, new RegExp(`\`${environmentName(name)}\``), name);
    assert.ok(row.includes(expected), name);
    assert.match(sentence, /^[A-Z'a-z].*[.]$/, `the sentence of ${name} ends in a full stop`);
    assert.equal(row.split(/(?<!\\)\|/).length, 6, `${name} has four cells`);
  }
});
