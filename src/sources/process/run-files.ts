/**
 * The TMPDIR of a run, and the files in it. If runs have a user of their own, TMPDIR is inside a directory of the service's
 * user, which the run can enter but not change. So a run cannot replace anything that the service reads and removes as root
 * with a link.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import {
  chmod,
  chown,
  lchown,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { RunAs } from './environment.ts';

/** The mode of the directory around a TMPDIR of another user, whose group may enter it. */
const HANDED_OVER = 0o710;

export interface RunDirectory {
  /** The directory to remove at the end. */
  path: string;
  /** The TMPDIR: `path`, or a directory in it. */
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

/** Makes the user of the run the owner of the TMPDIR and the files in it. */
export async function handOver({ temporary }: RunDirectory, runAs: RunAs | undefined): Promise<void> {
  if (runAs === undefined) return;
  const { uid, gid } = runAs;
  for (const name of await readdir(temporary)) await lchown(join(temporary, name), uid, gid);
  await chown(temporary, uid, gid);
}

/** Removes the directory of a run, which may be from an earlier process, with all its contents. */
export async function removeRunDirectory(path: string): Promise<void> {
  const isHandedOver = ((await lstat(path).catch(() => undefined))?.mode ?? 0) % 0o1000 === HANDED_OVER;
  for (const { entry, uid, gid } of isHandedOver ? await entriesOfOthers(path) : []) {
    // Run as the owner of the entry: a remaining process of that user could replace a directory with a link while root
    // removes it.
    const remover = spawn('/bin/rm', ['-rf', '--', entry], { uid, gid, cwd: '/', env: {}, stdio: 'ignore' });
    await once(remover, 'exit');
    // The child cannot remove the entry itself, because the directory around the entry belongs to the service.
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

/** The prefix of the temporary directories of one attempt. */
export function temporaryPrefix(attempt: { jobId: string; attempt: number }): string {
  return `flowhook-${attempt.jobId}-${attempt.attempt}-`;
}

/** Removes temporary directories that are left of an attempt, because the server was killed during it. */
export async function removeLeftoverFiles(attempt: { jobId: string; attempt: number }): Promise<void> {
  const prefix = temporaryPrefix(attempt);
  for (const name of await readdir(tmpdir())) {
    if (name.startsWith(prefix)) await removeRunDirectory(join(tmpdir(), name));
  }
}

const MAX_STATE_BYTES = 1 << 20;

/** Absolute paths. `config` is undefined if the definition has no `config`. */
export interface RunFiles {
  state: string;
  config: string | undefined;
}

/** Writes both files, readable only by this user, because the configuration may contain secrets. */
export async function writeRunFiles(
  directory: string,
  { state, config }: { state: string; config: string | undefined },
): Promise<RunFiles> {
  const files = {
    state: join(directory, 'state.json'),
    config: config === undefined ? undefined : join(directory, 'config.json'),
  };
  await writeFile(files.state, state, { mode: 0o600 });
  if (files.config !== undefined) await writeFile(files.config, config as string, { mode: 0o600 });
  return files;
}

/** Replaces `${state}` and `${config}` with the paths. */
export function withFiles(command: readonly string[], files: RunFiles): string[] {
  return command.map((argument) =>
    argument.replace(/\$\{(state|config)\}/g, (reference, name: keyof RunFiles) => files[name] ?? reference),
  );
}

/** The variables with the paths, for programs that do not take them as arguments. */
export function filesEnvironment(files: RunFiles): Record<string, string> {
  return {
    FLOWHOOK_STATE: files.state,
    ...(files.config === undefined ? {} : { FLOWHOOK_CONFIG: files.config }),
  };
}

/**
 * Reads the state that a program has left. `state` is undefined if it is unchanged or the file is gone; `mistake` says why
 * the state cannot be stored.
 */
export async function readStateLeft(
  file: string,
  before: string,
): Promise<{ state: unknown } | { mistake: string }> {
  const text = await readSmallFile(file);
  if (text === undefined || text === before) return { state: undefined };
  if (text === 'unusable') {
    return { mistake: 'The state in FLOWHOOK_STATE is not a file of at most 1 MiB' };
  }
  try {
    const state: unknown = JSON.parse(text);
    return { state: JSON.stringify(state) === before ? undefined : state };
  } catch (error) {
    return { mistake: `The state in FLOWHOOK_STATE is not JSON: ${(error as Error).message}` };
  }
}

/** Does not follow links and does not block: a program may have replaced the file with a pipe or a device. */
async function readSmallFile(path: string): Promise<string | undefined> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : 'unusable';
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_STATE_BYTES) return 'unusable';
    // If runs have a user of their own, the service reads this as root. It must only read files of that user.
    const { uid } = await stat(dirname(path));
    if (uid !== process.getuid?.() && stats.uid !== uid) return 'unusable';
    return await file.readFile('utf8');
  } catch {
    return 'unusable';
  } finally {
    await file.close();
  }
}
