/** New directories have the given mode, and paths where no directory can be created are refused. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeDirectory } from './make-directory.ts';

test('creates missing parents, which only their owner can access', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-make-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'a/b/c');
  makeDirectory(path);
  makeDirectory(path);
  for (const one of ['a', 'a/b', 'a/b/c']) assert.equal(statSync(join(directory, one)).mode & 0o777, 0o700);
});

test('fails where no directory can be created', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-make-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'file'), '');
  symlinkSync('nowhere', join(directory, 'link'));
  assert.throws(() => makeDirectory(join(directory, 'file')), /file is not a directory/);
  assert.throws(() => makeDirectory(join(directory, 'file/below')), /file is not a directory/);
  assert.throws(() => makeDirectory(join(directory, 'link')), /ENOENT/);
  assert.throws(() => makeDirectory('/proc/nowhere/below'), /ENOENT|EPERM|EROFS|EACCES/);
});
