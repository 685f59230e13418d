/** Plain words: the prose of the whole repository does without the words on the list in `test/support/words.ts`. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { filesWithProse, misusesIn } from '../support/words.ts';

const ROOT = join(import.meta.dirname, '..', '..');

test('no prose uses a word on the list', () => {
  const found = filesWithProse(ROOT).flatMap((path) =>
    misusesIn(path, readFileSync(join(ROOT, path), 'utf8')),
  );
  assert.equal(
    found.length,
    0,
    `\n${found.map(({ path, line, found, instead }) => `  ${path}:${line}: "${found}", rather: ${instead}`).join('\n')}\n`,
  );
});

/** Deliberately bad: what is found in each language, and what is code and therefore not read. */
const BAD: Readonly<Record<string, { path: string; text: string; found: string[] }>> = {
  'a comment': {
    path: 'limit.ts',
    text: '/** Whoever asks is told at once. */\nexport const answers = 3;\n',
    found: ['Whoever', 'told', 'at once'],
  },
  'a string': { path: 'limit.ts', text: "throw new Error('It is as if it stands');\n", found: ['stands'] },
  'a template of several lines': {
    path: 'help.ts',
    text: `const help = \`Print it,\n  whatever \${told.anew} is\`;\n`,
    found: ['whatever'],
  },
  'the text of an element': {
    path: 'page.tsx',
    text: 'const page = <p title={told}>It is tried anew.</p>;\n',
    found: ['anew'],
  },
  'a page': { path: 'jobs.md', text: 'Requests are `told` to wait from then on.\n', found: ['from then on'] },
  'a comment in YAML': { path: 'flowhook.yaml', text: 'told: 80 # 8080 unless told\n', found: ['told'] },
  'a description of the API': {
    path: 'openapi.json',
    text: '{ "told": "at once", "description": "What comes of it" }\n',
    found: ['comes of'],
  },
};

for (const [name, { path, text, found }] of Object.entries(BAD)) {
  test(`finds them in ${name}`, () => {
    assert.deepEqual(
      misusesIn(path, text).map((misuse) => misuse.found),
      found,
    );
  });
}
