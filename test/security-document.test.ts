/** docs/security.md: the tests and the settings that it names are there. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { environmentName } from '../src/config/names.ts';
import { SETTINGS } from '../src/config/settings.ts';

const root = join(import.meta.dirname, '..');
const text = readFileSync(join(root, 'docs', 'security.md'), 'utf8');

test('every test that is named exists', () => {
  const named = [...text.matchAll(/`([\w/.-]+\.test\.ts)`/g)].map(([, path = '']) => path);
  assert.ok(named.length > 40, `${named.length} are named`);
  assert.deepEqual(
    named.filter((path) => !existsSync(join(root, path))),
    [],
  );
});

test('every setting that is named exists', () => {
  const known = SETTINGS.flatMap(({ name }) => [environmentName(name), `${environmentName(name)}_FILE`]);
  const named = [...text.matchAll(/FLOWHOOK_[A-Z_]+/g)].map(([name]) => name);
  assert.ok(named.length > 8);
  assert.deepEqual(
    named.filter((name) => !known.includes(name)),
    [],
  );
});

test('files that are linked exist', () => {
  for (const file of ['docs/security.md', 'SECURITY.md']) {
    const content = readFileSync(join(root, file), 'utf8');
    for (const [, target = ''] of content.matchAll(/\]\(([^)#]+)\)/g)) {
      assert.ok(existsSync(join(root, file, '..', target)), `${file} links to ${target}`);
    }
  }
});
