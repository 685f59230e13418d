/** Every block of code in the documentation is what it claims to be: see commands*.test.ts for those of a shell. */
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

test('every block runs, or says why it does not', (t) => {
  const notRun = snippets.filter(({ verdict }) => verdict !== undefined && 'notRun' in verdict);
  t.diagnostic(`${snippets.filter(isRun).length} blocks of code are run, ${notRun.length} are not`);
  for (const snippet of notRun) {
    if (snippet.verdict !== undefined && 'notRun' in snippet.verdict) {
      t.diagnostic(`not run: ${placeOf(snippet)}: ${snippet.verdict.notRun}`);
    }
  }
  assert.deepEqual(snippets.flatMap(mistakesOf), []);
});

/** What is wrong with a block before anything of it is tried. */
function mistakesOf(snippet: Snippet): string[] {
  const { language, verdict } = snippet;
  if (language === '') return [`${placeOf(snippet)} has no language: what is no code is \`${NO_CODE}\``];
  if (language === NO_CODE) {
    return verdict === undefined ? [] : [`${placeOf(snippet)} is no code: it needs no comment`];
  }
  if (verdict !== undefined && 'notRun' in verdict) return [];
  const known = KNOWN[language];
  if (known === undefined) {
    return [
      `${placeOf(snippet)}: nothing here runs ${language}. Write <!-- not run: WHY --> on the line before`,
    ];
  }
  if (verdict === undefined || known.includes(verdict.run)) return [];
  return [`${placeOf(snippet)}: \`run: ${verdict.run}\` means nothing for ${language}`];
}

test('JSON can be read, whole or line by line', () => {
  for (const snippet of ran('json')) {
    const { text } = snippet;
    const isLines = text.split('\n').every((line) => /^[{[].*[}\]]$/.test(line));
    for (const part of isLines ? text.split('\n') : [text]) {
      assert.doesNotThrow(() => JSON.parse(part), placeOf(snippet));
    }
  }
});

for (const snippet of ran('yaml')) {
  test(`${placeOf(snippet)} is a workflow, settings, or said to be something else`, async () => {
    const value: unknown = parse(snippet.text);
    if (snippet.verdict !== undefined) return;
    assert.ok(typeof value === 'object' && value !== null);
    const keys = Object.keys(value);
    if (keys.every((key) => SETTINGS.some(({ name }) => name === key))) {
      await writeFile(join(directory, 'flowhook.yaml'), snippet.text);
      readConfig({}, {}, directory);
      return;
    }
    // A part of a definition is tried with a source that takes every setting.
    const source = keys.includes('source') ? '' : 'source: { type: command, command: [people] }\n';
    const parsed = parseYamlDefinition(source + snippet.text, { file: 'default/snippet.yaml' });
    const told =
      'mistakes' in parsed ? parsed.mistakes.map(({ line, message }) => `${line}: ${message}`) : [];
    assert.deepEqual(told, [], 'YAML of another program is marked <!-- run: parsed only -->');
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
    // What it finds is told on standard output; why it could not even look, on the other.
    ({ stdout, stderr }: { stdout: string; stderr: string }) => assert.fail(`${stdout}${stderr}`),
  );
});
