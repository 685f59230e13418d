/**
 * The TMPDIR of a run. Where runs have a user of their own, it lies in a directory of the service's user, which the run
 * can pass but not change: it cannot put a link in the place of what the service reads and removes there as root.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, lchown, lstat, mkdir, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunAs } from './run-as.ts';

/** The mode of a directory around a TMPDIR of another user, whose group may pass. */
const HANDED_OVER = 0o710;

export interface RunDirectory {
  /** What is removed at the end. */
  path: string;
  /** The TMPDIR. */
  temporary: string;
}

export async function makeRunDirectory(prefix: string, runAs: RunAs | undefined): Promise<RunDirectory> {
  const path = await mkdtemp(join(tmpdir(), prefix));
  if (runAs === undefined) return { path, temporary: path };
  await chown(path, 0, runAs.gid);
  await chmod(path, HANDED_OVER);
  const temporary = join(path, 'tmp');
  await mkdir(temporary, { mode: 0o700 });
  return { path, temporary };
}

/** Gives the TMPDIR and the files that were put into it to the user of the run, and to nobody else. */
export async function handOver({ temporary }: RunDirectory, runAs: RunAs | undefined): Promise<void> {
  if (runAs === undefined) return;
  const { uid, gid } = runAs;
  for (const name of await readdir(temporary)) await lchown(join(temporary, name), uid, gid);
  await chown(temporary, uid, gid);
}

/** Removes the directory of a run, of this process or an earlier one, with all that is in it. */
export async function removeRunDirectory(path: string): Promise<void> {
  const isHandedOver = ((await lstat(path).catch(() => undefined))?.mode ?? 0) % 0o1000 === HANDED_OVER;
  for (const { entry, uid, gid } of isHandedOver ? await entriesOfOthers(path) : []) {
    // As its owner: a process of that user that is still there could exchange a directory for a link while root removes it.
    const remover = spawn('/bin/rm', ['-rf', '--', entry], { uid, gid, cwd: '/', env: {}, stdio: 'ignore' });
    await once(remover, 'exit');
    // It cannot remove the entry itself, because the directory around it belongs to the service.
    await rmdir(entry).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
  await rm(path, { recursive: true, force: true, maxRetries: 3 });
}

async function entriesOfOthers(path: string): Promise<{ entry: string; uid: number; gid: number }[]> {
  const names = await readdir(path).catch(() => []);
  const entries = names.map(async (name) => {
    const entry = join(path, name);
    const found = await lstat(entry);
    return { entry, uid: found.uid, gid: found.gid, isDirectory: found.isDirectory() };
  });
  return (await Promise.all(entries)).filter(({ uid, isDirectory }) => uid !== 0 && isDirectory);
}
