/** The types of `flowhook/workflow` for modules. `test/package` checks that they are packed. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { directoryOf } from '../../test/support/jobs/sources.ts';

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
  const response: Response = await ctx.fetch('https://example.org', { signal: ctx.signal });
  ctx.progress({ pages: 1, message: 'first' });
  ctx.log.warn('careful', { status: response.status });
  ctx.state.set('at', 1);
  yield { id: ctx.secret('NAME') };
}
`;

test('TypeScript checks a module against the types of the installed package', async (t) => {
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
  const tsc = run(
    process.execPath,
    [
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--types',
      'node',
      'good.mts',
      'bad.mts',
    ],
    { cwd: directory },
  );
  await assert.rejects(tsc, ({ stdout }: { stdout: string }) => {
    assert.match(stdout, /'"never"' is not assignable/);
    assert.match(stdout, /'page' does not exist/);
    assert.doesNotMatch(stdout, /good\.mts/);
    return true;
  });
});
