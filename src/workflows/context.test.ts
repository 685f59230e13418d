/** `flowhook/workflow`: the types reach whoever has installed the package, and are in it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { directoryOf } from './sources/trial.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');

const MODULE = `
import type { Context, Rec, Workflow } from 'flowhook/workflow';

export const workflow: Workflow = {
  schedule: { cron: '0 6 * * *', timezone: 'Europe/Berlin', missed: 'skip' },
  limits: { memory: '1GB', output: '10MB' },
  priority: 5,
};

export default async function* (ctx: Context): AsyncGenerator<Rec> {
  const answer: Response = await ctx.fetch('https://example.org', { signal: ctx.signal });
  ctx.progress({ pages: 1, message: 'first' });
  ctx.log.warn('careful', { status: answer.status });
  ctx.state.set('at', 1);
  yield { id: ctx.secret('NAME') };
}
`;

test('a module is checked against the types of the installed package', async (t) => {
  const directory = await directoryOf(t, {
    'good.mts': MODULE,
    'bad.mts': MODULE.replace("'skip'", "'never'").replace('pages: 1', 'page: 1'),
    'package.json': '{"type":"module"}',
  });
  await mkdir(join(directory, 'node_modules/@types'), { recursive: true });
  await symlink(ROOT, join(directory, 'node_modules/flowhook'));
  for (const name of ['node', '../undici-types']) {
    const target = join(ROOT, 'node_modules/@types', name);
    await symlink(target, join(directory, 'node_modules/@types', name));
  }
  const tsc = (file: string) =>
    run(
      process.execPath,
      [
        join(ROOT, 'node_modules/typescript/bin/tsc'),
        '--noEmit',
        '--strict',
        '--module',
        'nodenext',
        '--types',
        'node',
        file,
      ],
      { cwd: directory },
    );
  await tsc('good.mts');
  await assert.rejects(tsc('bad.mts'), ({ stdout }: { stdout: string }) => {
    assert.match(stdout, /'"never"' is not assignable/);
    assert.match(stdout, /'page' does not exist/);
    return true;
  });
});

test('the package holds the types', async () => {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  assert.ok(files.some(({ path }) => path === 'src/workflows/context.d.ts'));
});
