/** The workflows of the forge name only what exists, have few permissions, and leave their work to the repository. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

interface Step {
  uses?: string;
  run?: string;
}

interface Job {
  uses?: string;
  needs?: string | string[];
  permissions?: Record<string, string>;
  'timeout-minutes'?: number;
  environment?: string;
  steps?: Step[];
}

interface Workflow {
  permissions: Record<string, string>;
  concurrency?: object;
  jobs: Record<string, Job>;
}

const FILES = globSync('.github/workflows/*.yml', { cwd: ROOT }).map((file) => {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return { file, text, workflow: parse(text) as Workflow };
});
const RELEASE = FILES.find(({ file }) => file.endsWith('release.yml'))?.workflow;
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps ?? []);
const commandsOf = (workflow: Workflow) => stepsOf(workflow).flatMap(({ run }) => run ?? []);

for (const { file, text, workflow } of FILES) {
  test(`${file} runs scripts and files that exist`, () => {
    const commands = commandsOf(workflow).join('\n');
    const missing = [...commands.matchAll(/\bnpm run ([\w:]+)/g)].filter(
      ([, name = '']) => !(name in scripts),
    );
    assert.deepEqual(missing, []);
    const made = /^(dist-|chart\/|notes\.md)/;
    const paths = [...commands.matchAll(/(?<![\w./"-])((?:\.ci|\w[\w-]*)\/[\w./-]+|\w[\w-]*\.md)/g)]
      .map(([, path = '']) => path)
      .filter((path) => !made.test(path) && !path.startsWith('node_modules/'));
    assert.deepEqual(
      paths.filter((path) => !existsSync(join(ROOT, path))),
      [],
    );
    const called = Object.values(workflow.jobs).flatMap(({ uses }) => uses ?? []);
    for (const path of called) assert.ok(existsSync(join(ROOT, path)), path);
  });

  test(`${file} pins every action to a commit, and names its version`, () => {
    const used = [...text.matchAll(/\buses: (\S+\/\S+@.*)$/gm)].map(([, action = '']) => action);
    for (const action of used) assert.match(action, /^actions\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test(`${file} gives no job more time or rights than it needs`, () => {
    assert.deepEqual(workflow.permissions, {});
    assert.ok(workflow.concurrency);
    for (const [name, job] of Object.entries(workflow.jobs)) {
      assert.ok(job.permissions, `${name} has the permissions of the repository`);
      if (job.uses === undefined) assert.ok(job['timeout-minutes'], `${name} may run for six hours`);
    }
  });

  test(`${file} has no scripts of its own`, () => {
    for (const command of commandsOf(workflow)) assert.ok(command.trim().split('\n').length <= 3, command);
  });
}

test('only .ci/run lists the checks, for a change and for a release', () => {
  const check = FILES.find(({ file }) => file.endsWith('check.yml'));
  assert.deepEqual(check && commandsOf(check.workflow), ['.ci/run']);
  assert.equal(RELEASE?.jobs.check?.uses, './.github/workflows/check.yml');
});

test('nothing is published before all checks have passed and the owners have approved it', () => {
  const jobs = RELEASE?.jobs ?? {};
  const needed = (name: string): string[] =>
    [jobs[name]?.needs ?? []].flat().flatMap((one) => [one, ...needed(one)]);
  assert.equal(jobs.approve?.environment, 'release');
  for (const [name, { permissions }] of Object.entries(jobs)) {
    if (!Object.values(permissions ?? {}).includes('write')) continue;
    for (const before of ['check', 'pack', 'executable', 'approve'])
      assert.ok(needed(name).includes(before), name);
  }
});
