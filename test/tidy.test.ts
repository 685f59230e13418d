/** The rules about the structure of the code, each with a broken example. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { findings, importsOfLevels, RULES } from './support/tidy.ts';

const root = join(import.meta.dirname, '..');
const untidy = join(import.meta.dirname, 'support', 'untidy');

test('the code follows every rule', () => {
  const found = findings(root);
  assert.equal(
    found.length,
    0,
    `\n${found.map(({ rule, sentence }) => `  ${rule}: ${sentence}`).join('\n')}\n`,
  );
});

test('ARCHITECTURE.md lists the imports of each level', () => {
  const rows = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').matchAll(
    /^\| `([\w.]+)` \| [^|]+ \| (.+) \|$/gm,
  );
  assert.deepEqual(
    Object.fromEntries(
      [...rows].map(([, level, imports = '']) => [level, imports === 'nothing' ? [] : imports.split(' ')]),
    ),
    Object.fromEntries(importsOfLevels(root)),
  );
});

test('every rule has a broken example, and every example has a rule', () => {
  assert.deepEqual(readdirSync(untidy).sort(), Object.keys(RULES).sort());
});

for (const rule of Object.keys(RULES)) {
  test(`only the rule "${rule}" finds its broken example`, () => {
    const rules = new Set(findings(join(untidy, rule)).map((finding) => finding.rule));
    assert.deepEqual([...rules], [rule]);
  });
}
