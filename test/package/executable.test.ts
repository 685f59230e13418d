/** The executable works alone in an empty directory, with PATH and HOME empty. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeExecutable } from '../support/cli/installation.ts';
import { runInstalled, tryInstalledService } from '../support/cli/installed-service.ts';

const directory = await mkdtemp(join(tmpdir(), 'flowhook-alone-'));
after(() => rm(directory, { recursive: true, force: true }));
const program = await makeExecutable(directory);
const command = (...args: string[]) => runInstalled(program, args, { directory });

test('prints its version, its help and completions', async () => {
  assert.match(await command('--version'), /^\d+\.\d+\.\d+\n$/);
  assert.match(await command('--help'), /^Usage: flowhook /m);
  assert.match(await command('completion', 'bash'), /complete .*\bflowhook\n/);
});

test('a module and its settings are read as another user', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can run sources as another user');
  const alone = await mkdtemp(join(tmpdir(), 'flowhook-run-as-'));
  t.after(() => rm(alone, { recursive: true, force: true }));
  for (const one of [alone, directory]) await chmod(one, 0o755);
  const file = join(alone, 'who.mts');
  await writeFile(
    file,
    "export const workflow: object = { name: 'Who' };\n" +
      'export default async function* () { yield { id: process.getuid?.() as number }; }\n',
  );
  const printed = await runInstalled(program, ['workflows', 'test', file, '--json'], {
    directory: alone,
    settings: { FLOWHOOK_RUN_AS: '65534:65534' },
  });
  assert.match(printed, /"65534"/);
});

test('the files of a new installation name the executable', async () => {
  await command('init', 'installation');
  const unit = await readFile(join(directory, 'installation', 'flowhook.service'), 'utf8');
  assert.match(unit, new RegExp(`^ExecStart=${program} serve$`, 'm'));
  await rm(join(directory, 'installation'), { recursive: true });
});

test('the service works, and writes only its data beside the executable', async (t) => {
  await tryInstalledService(t, { program, directory });
  assert.deepEqual((await readdir(directory)).sort(), ['data', 'flowhook', 'workflows']);
});

// The contract tests use the executable instead of the repository's program.
process.env.FLOWHOOK_TEST_PROGRAM = program;
await import('../contract/contract.test.ts');
