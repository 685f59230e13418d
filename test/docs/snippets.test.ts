/** Every block of code in the documentation is valid. commands*.test.ts runs the shell blocks. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { parseYamlDefinition } from '../../src/definitions/definition.ts';
import {
  isRun,
  KNOWN,
  NO_CODE,
  placeOf,
  ROOT,
  type Snippet,
  SNIPPETS as snippets,
} from '../support/docs/snippets.ts';

const directory = await mkdtemp(join(tmpdir(), 'flowhook-snippets-'));
after(() => rm(directory, { recursive: true, force: true }));

const ran = (language: string) => snippets.filter((one) => one.language === language && isRun(one));

test('every block is run, or says why not', (t) => {
  const notRun = snippets.filter(({ verdict }) => verdict !== undefined && 'notRun' in verdict);
  t.diagnostic(`${snippets.filter(isRun).length} blocks of code are run, ${notRun.length} are not`);
  for (const snippet of notRun) {
    if (snippet.verdict !== undefined && 'notRun' in snippet.verdict) {
      t.diagnostic(`not run: ${placeOf(snippet)}: ${snippet.verdict.notRun}`);
    }
  }
  assert.deepEqual(snippets.flatMap(mistakesOf), []);
});

/** Mistakes in the language and the comment of a block. */
function mistakesOf(snippet: Snippet): string[] {
  const { language, verdict } = snippet;
  if (language === '')
    return [`${placeOf(snippet)} has no language: use \`${NO_CODE}\` for text that is not code`];
  if (language === NO_CODE) {
    return verdict === undefined ? [] : [`${placeOf(snippet)} is not code and needs no comment`];
  }
  if (verdict !== undefined && 'notRun' in verdict) return [];
  const known = KNOWN[language];
  if (known === undefined) {
    return [
      `${placeOf(snippet)}: ${language} cannot be run here. Write <!-- not run: WHY --> on the line before`,
    ];
  }
  if (verdict === undefined || known.includes(verdict.run)) return [];
  return [`${placeOf(snippet)}: \`run: ${verdict.run}\` is not supported for ${language}`];
}

test('JSON parses, as a whole or line by line', () => {
  for (const snippet of ran('json')) {
    const { text } = snippet;
    const isLines = text.split('\n').every((line) => /^[{[].*[}\]]$/.test(line));
    for (const part of isLines ? text.split('\n') : [text]) {
      assert.doesNotThrow(() => JSON.parse(part), placeOf(snippet));
    }
  }
});

for (const snippet of ran('yaml')) {
  test(`${placeOf(snippet)} is a workflow, settings, or marked as something else`, async () => {
    const value: unknown = parse(snippet.text);
    if (snippet.verdict !== undefined) return;
    assert.ok(typeof value === 'object' && value !== null);
    const keys = Object.keys(value);
    if (keys.every((key) => SETTINGS.some(({ name }) => name === key))) {
      await writeFile(join(directory, 'flowhook.yaml'), snippet.text);
      readConfig({}, {}, directory);
      return;
    }
    // A part of a definition is completed with a source that supports every setting.
    const source = keys.includes('source') ? '' : 'source: { type: command, command: [people] }\n';
    const parsed = parseYamlDefinition(source + snippet.text, { file: 'default/snippet.yaml' });
    const mistakes =
      'mistakes' in parsed ? parsed.mistakes.map(({ line, message }) => `${line}: ${message}`) : [];
    assert.deepEqual(mistakes, [], 'YAML of another program is marked <!-- run: parsed only -->');
  });
}

test('TypeScript compiles', async () => {
  for (const snippet of ran('ts')) {
    await writeFile(join(directory, `${placeOf(snippet).replaceAll(/[/:]/g, '-')}.mts`), snippet.text);
  }
  const options = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      lib: ['esnext', 'dom', 'dom.iterable'],
      noUnusedLocals: false,
      typeRoots: [join(ROOT, 'node_modules', '@types')],
      paths: {
        'flowhook/workflow': [join(ROOT, 'src/sources/context.d.ts')],
        'flowhook-client': [join(ROOT, 'client/src/flowhook-client.ts')],
      },
    },
    include: ['*.mts'],
  };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(options));
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await promisify(execFile)(process.execPath, [compiler, '-p', directory]).catch(
    // Type errors are on standard output, other errors on standard error.
    ({ stdout, stderr }: { stdout: string; stderr: string }) => assert.fail(`${stdout}${stderr}`),
  );
});
