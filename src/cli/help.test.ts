/** Rules for every command: its help, its flags and its examples. Errors for mistakes in a command line. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runCommand } from '../../test/support/cli/commands.ts';
import { programOf } from '../main.ts';
import type { Command } from './command.ts';
import { leavesOf, wholeExample } from './help.ts';

/** Commands that print no data. */
const WITHOUT_JSON = ['serve', 'completion'];
const VERBS = [
  'init',
  'serve',
  'run',
  'apply',
  'search',
  'dashboard',
  'doctor',
  'completion',
  'login',
  'logout',
  'profiles',
];
const NOUNS = [
  'jobs',
  'workflows',
  'data',
  'state',
  'quarantine',
  'webhooks',
  'deliveries',
  'feeds',
  'events',
  'migrate',
  'backup',
  'database',
  'config',
  'keys',
  'audit',
  'teams',
];

const directory = mkdtempSync(join(tmpdir(), 'flowhook-cli-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const program = await programOf(undefined);
const leaves = leavesOf(program);

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 80 });
  command.outputHelp();
  return text;
}

const flowhook = (...args: string[]) => runCommand(args, { directory });

for (const { path, command } of leaves) {
  test(`the help of \`flowhook ${path}\` begins with examples and ends with exit codes`, () => {
    const help = helpOf(command);
    assert.match(help, /^Examples:\n {2}\S/);
    assert.match(help, /\nExit codes: flowhook help exit-codes\n$/);
    for (const line of help.split('\n')) assert.ok(line.length <= 80, line);
    assert.match(command.description(), /^[a-zA-Z].*[^.]$/s);
    for (const { flags, description } of command.options) assert.match(description, /\S/, flags);
    const [first = '', ...more] = path.split(' ');
    assert.ok(more.length === 0 ? VERBS.includes(first) : NOUNS.includes(first), 'noun and verb');
  });

  test(`\`flowhook ${path}\` takes --quiet and --json, and every flag of its examples`, () => {
    const known = ['--help', ...command.options.map(({ long }) => long)];
    assert.ok(known.includes('--quiet'));
    assert.equal(known.includes('--json'), !WITHOUT_JSON.includes(path));
    for (const example of command.examples) {
      assert.match(wholeExample(example), new RegExp(`(^|\\| )flowhook ${path}( |$)`));
      const flags = example.match(/(?<=\s)--[a-z-]+/g) ?? [];
      assert.deepEqual(
        flags.filter((flag) => !known.includes(flag)),
        [],
        example,
      );
    }
  });
}

test('--version loads no command', async () => {
  assert.deepEqual((await programOf('--version')).commands, []);
});

test('help and version exit with 0, and the exit codes have a help page', async () => {
  for (const args of [['--help'], ['help', 'jobs'], ['jobs', 'list', '--help'], ['--version']]) {
    const { code, stderr } = await flowhook(...args);
    assert.deepEqual([code, stderr], [0, ''], args.join(' '));
  }
  assert.match((await flowhook('help', 'exit-codes')).stdout, /7 {2}timed out/);
});

for (const [args, code, sentence] of [
  [['server'], 2, /Did you mean serve\?/],
  [['job', 'list'], 2, /Did you mean jobs\?/],
  [['jobs', 'lst'], 2, /Did you mean list\?/],
  [['validate'], 2, /Did you mean workflows validate\?/],
  [['help', 'nope'], 2, /unknown command 'nope'/],
  [['help', 'job'], 2, /Did you mean jobs\?/],
  [['help', 'jobs', 'lst'], 2, /Did you mean list\?/],
  [['jobs', 'help', 'lst'], 2, /Did you mean list\?/],
  [['jobs', 'list', '--states', 'failed'], 2, /Did you mean --state\?/],
  [['jobs', 'list', '--state', 'finnished'], 2, /Did you mean finished\?/],
  [['jobs', 'show'], 2, /missing required argument 'job'/],
  [['data', 'changes', 'people', '--sinse', '3'], 2, /unknown option '--sinse'\n\(Did you mean --since\?\)/],
  [['data', 'changes', 'people'], 2, /required option '--since <moment>' is missing\nExample: /],
  [['jobs', 'list'], 3, /There is no database .*flowhook serve/],
  [['data', 'import', 'nothing.csv', '--workflow', 'x'], 3, /There is no file nothing\.csv/],
  [['data', 'import', 'x.txt', '--workflow', 'x'], 2, /--format: /],
  [['completion', 'tcsh'], 2, /must be one of bash, zsh, fish/],
  [['run', 'people', '--data', '/proc/nowhere'], 3, /There is no database/],
] as const) {
  test(`\`flowhook ${args.join(' ')}\` exits with ${code} and the next step`, async () => {
    const ended = await flowhook(...args);
    assert.equal(ended.code, code, ended.stderr);
    assert.equal(ended.stdout, '');
    assert.match(ended.stderr, sentence);
  });
}

test('--quiet suppresses messages, but neither data nor errors', async () => {
  const made = await flowhook('keys', 'create', '--team', 'default', '--quiet');
  assert.match(made.stdout, /^fh_/);
  assert.equal(made.stderr, '');
  assert.match((await flowhook('jobs', 'show', 'job_1', '--quiet')).stderr, /No job "job_1" found/);
});
