/** Loading a directory: the files that are found, ignored and refused. */
import assert from 'node:assert/strict';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { directoryOf } from '../../test/support/jobs/sources.ts';
import { silentLogger } from '../observe/log.ts';
import { readModuleSettings } from '../sources/process/module.ts';
import { loadWorkflows } from './load.ts';

const YAML = 'source: { type: command, command: ["true"] }';
const MODULE = `console.log('prints'); export const workflow = { name: 'Named' };
export default async function* () {}`;

function load(directory: string, known: Record<string, string> = {}) {
  return loadWorkflows({
    directory,
    known: (team, id) => known[`${team}/${id}`],
    runAs: undefined,
    log: silentLogger,
  });
}

test('finds the workflows of each team and ignores everything else', async (t) => {
  const directory = await directoryOf(t, {
    'README.md': '',
    'acme/crm contacts.yaml': YAML,
    'acme/team.yml': YAML,
    'acme/people.mts': MODULE,
    'acme/people.mjs': 'throw 1',
    'acme/.hidden.yaml': 'broken: [',
    'acme/shared/part.yaml': 'broken: [',
    'other-team/crm contacts.yaml': YAML,
    'node_modules/pkg/x.yaml': 'broken: [',
    'Not a team/notes.txt': '',
    '.git/config.yaml': 'broken: [',
  });
  await symlink(join(directory, 'acme/team.yml'), join(directory, 'acme/linked.yml'));
  const { found, mistakes, broken } = await load(directory);
  assert.deepEqual([mistakes, broken], [[], []]);
  assert.deepEqual(
    found.map(({ team, id, file, definition }) => [team, id, file, definition?.name]),
    [
      ['acme', 'crm contacts', 'acme/crm contacts.yaml', 'crm contacts'],
      ['acme', 'linked', 'acme/linked.yml', 'linked'],
      ['acme', 'people', 'acme/people.mts', 'Named'],
      ['acme', 'team', 'acme/team.yml', 'team'],
      ['other-team', 'crm contacts', 'other-team/crm contacts.yaml', 'crm contacts'],
    ],
  );
});

test('the mistake of a misplaced or misnamed definition says where it belongs', async (t) => {
  const directory = await directoryOf(t, {
    'stray.yaml': YAML,
    'compose.yaml': 'services: {}\n',
    'acme/good.yaml': YAML,
    'acme/data.json': '[{ "source": "a" }]',
    'acme/people.ymal': 'sorce: {}\nschedule: { every: 1h }\n',
    'acme/json.json': '{ "source": { "type": "push" } }',
    'acme/module.ts': MODULE,
    'acme/lib/shared.mts': 'export const one = 1;',
    'acme/lib/deep.yaml': YAML,
    'acme/.drafts/later.yaml': YAML,
    'acme/old.yaml.bak': YAML,
  });
  const { found, mistakes, broken } = await load(directory);
  assert.deepEqual(
    found.map(({ id }) => id),
    ['good'],
  );
  assert.deepEqual(
    mistakes.map(({ file, message }) => [file, message.match(/(?:Move|Rename) it to \S+?(?=;|$)/)?.[0]]),
    [
      ['stray.yaml', 'Move it to acme/stray.yaml'],
      ['acme/json.json', 'Rename it to acme/json.yaml'],
      ['acme/lib/deep.yaml', 'Move it to acme/deep.yaml'],
      ['acme/module.ts', 'Rename it to acme/module.mts'],
      ['acme/people.ymal', 'Rename it to acme/people.yaml'],
    ],
  );
  assert.deepEqual(broken[0], { team: null, id: 'stray' });
});

test('files whose hash is known are not parsed again', async (t) => {
  const directory = await directoryOf(t, { 'acme/a.yaml': YAML, 'acme/b.mts': MODULE });
  const first = await load(directory);
  const known = Object.fromEntries(first.found.map(({ team, id, hash }) => [`${team}/${id}`, hash]));
  const second = await load(directory, known);
  assert.deepEqual(
    second.found,
    first.found.map((found) => ({ ...found, definition: null })),
  );
});

test('the hash depends on the path', async (t) => {
  const directory = await directoryOf(t, { 'acme/a.yaml': YAML, 'acme/b.yaml': YAML });
  const { found } = await load(directory);
  assert.notEqual(found[0]?.hash, found[1]?.hash);
});

test('files that cannot be used are mistakes and do not count as missing', async (t) => {
  const directory = await directoryOf(t, {
    'acme/twice.yaml': YAML,
    'acme/twice.mts': MODULE,
    'acme/typo.yaml': `${YAML}\nmoed: x`,
    'acme/good.yaml': YAML,
    'My Team/a.yaml': YAML,
  });
  await mkdir(join(directory, 'acme/folder.yaml'));
  await symlink(join(directory, 'nowhere'), join(directory, 'acme/dangling.yaml'));
  const { found, mistakes, broken } = await load(directory);
  assert.deepEqual(
    found.map(({ id }) => id),
    ['good'],
  );
  assert.deepEqual(
    mistakes.map(({ file, line, message }) => [file, line, message.slice(0, 49)]),
    [
      ['My Team', null, '"My Team" is not a valid team name. Rename the fo'],
      ['acme/dangling.yaml', null, 'This file cannot be read: ENOENT: no such file or'],
      ['acme/folder.yaml', null, 'This is not a regular file'],
      ['acme/twice.mts', null, 'The workflow twice is defined more than once, in '],
      ['acme/typo.yaml', 2, '`moed` is not a known setting. Did you mean `mode'],
    ],
  );
  assert.deepEqual(
    broken.map(({ team, id }) => `${team}/${id}`),
    ['acme/dangling', 'acme/folder', 'acme/twice', 'acme/typo'],
  );
});

test('a module that cannot be used is a mistake, and the others are still loaded', async (t) => {
  const directory = await directoryOf(t, {
    'acme/a-exits.mts': 'process.exit(0);',
    'acme/b-throws.mts': "\nthrow new Error('no database');",
    'acme/c-nothing.mts': 'export const workflow = {};',
    'acme/d-number.mts': 'export default 5;',
    'acme/e-waits.mts': 'await new Promise(() => {}); export default () => [];',
    'acme/f-syntax.mts': 'export default (: ) => [];',
    'acme/g-dropped.mts':
      "export const workflow = { limits: { timeout: () => '1m' } }; export default () => [];",
    'acme/h-setting.mts': '// one\nexport const workflow = { moed: 1 }; export default () => [];',
    'acme/i-writes.mts':
      "import { writeSync } from 'node:fs'; writeSync(3, 'mine\\n'); export default () => [];",
    'acme/j-good.mts': MODULE,
  });
  const { found, mistakes } = await load(directory);
  assert.deepEqual(
    found.map(({ id }) => id),
    ['j-good'],
  );
  const sentences = [
    /^Importing the module ended the process \(exit code 0\)/,
    /^The module cannot be imported: Error: no database\n.*b-throws\.mts:2/s,
    /^The module has no default export/,
    /^The default export must be a function that yields records, found a number \(5\)/,
    /^Importing the module ended the process \(exit code 13\)/,
    /^The module cannot be imported: .*f-syntax\.mts/s,
    /`workflow\.timeout` is a function\. Settings must be plain values/,
    /^`moed` is not a known setting/,
    /^Importing the module wrote to file descriptor 3, which Flowhook uses itself/,
  ];
  assert.equal(mistakes.length, sentences.length);
  for (const [position, sentence] of sentences.entries()) {
    assert.match(mistakes[position]?.message ?? '', sentence);
  }
  assert.equal(mistakes.at(-2)?.line, 2);
});

test('a module whose import hangs is killed and named, and the others are loaded', async (t) => {
  const directory = await directoryOf(t, {
    // Blocks its thread as an endless loop would, without taking a processor from other tests.
    'hangs.mts': 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);',
    'good.mts': MODULE,
  });
  const files = [join(directory, 'hangs.mts'), join(directory, 'good.mts')];
  const settings = await readModuleSettings(files, {
    directory,
    runAs: undefined,
    log: silentLogger,
    importMs: 4_000,
  });
  assert.match(JSON.stringify(settings.get(files[0] ?? '')), /did not end within 4 s/);
  assert.deepEqual(settings.get(files[1] ?? ''), { settings: { name: 'Named' } });
});

test('the error about a missing directory says what to do', async (t) => {
  const directory = await directoryOf(t, { file: '' });
  await assert.rejects(
    load(join(directory, 'file')),
    /is a file, not a directory\. Set the directory that contains it with --workflows or FLOWHOOK_WORKFLOWS/,
  );
  await rm(directory, { recursive: true });
  await assert.rejects(load(directory), {
    code: 'definition_invalid',
    message: /does not exist\. Create it/,
  });
});
