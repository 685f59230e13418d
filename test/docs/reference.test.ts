/** Files that are generated from the code match it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { references } from '../../site/reference/references.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { environmentName } from '../../src/config/sources.ts';

const made = await references();

for (const [path, text] of Object.entries(made)) {
  test(`${path} matches the code`, () => {
    assert.ok(
      readFileSync(join(import.meta.dirname, '../..', path), 'utf8') === text,
      `${path} is stale: run \`npm run reference\` and commit the result`,
    );
  });
}

test('every setting is listed with each of its names and its expected value', () => {
  for (const { name, expected, sentence } of SETTINGS) {
    const row =
      (made['docs/reference/settings.md'] ?? '')
        .split('\n')
        .find((line) => line.startsWith(`| \`${name}\``)) ?? '';
    assert.match(row, new RegExp(`\`${environmentName(name)}\``), name);
    assert.ok(row.includes(expected), name);
    assert.match(sentence, /^[A-Z'a-z].*[.]$/, `the sentence of ${name} ends in a full stop`);
    assert.equal(row.split(/(?<!\\)\|/).length, 6, `${name} has four cells`);
  }
});
