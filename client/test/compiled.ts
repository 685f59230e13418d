/** Compiles the client to JavaScript, as it is published. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const client = join(import.meta.dirname, '..');
const tsc = join(client, '../node_modules/.bin/tsc');

/**
 * @param options compiler flags
 * @returns the directory, which is deleted after the test
 */
export function compiled(t: TestContext, ...options: string[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-client-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const args = ['--no-warnings', tsc, '-p', client, '--noEmit', 'false', '--outDir', directory, ...options];
  execFileSync(process.execPath, args);
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  return directory;
}
