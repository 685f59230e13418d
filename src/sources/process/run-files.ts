/**
 * The TMPDIR of a run, and the files in it. If runs have a user of their own, TMPDIR is inside a directory of the
 * service's user, which the run can enter but not change. Otherwise the run could put a link to another file in place
 * of a file that the service reads or removes as root.
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

/** The mode of a directory that contains the TMPDIR of another user. The group of this user may enter the directory. */
const HANDED_OVER = 0o710;

export interface RunDirectory {
  /** The directory to remove when the run ends. */
  path: string;
  /** The TMPDIR of the run, which is either `path` or a directory inside `path`. */
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

/** Makes the user of the run the owner of the TMPDIR and of the files in it. */
export async function handOver({ temporary }: RunDirectory, runAs: RunAs | undefined): Promise<void> {
  if (runAs === undefined) return;
  const { uid, gid } = runAs;
  for (const name of await readdir(temporary)) await lchown(join(temporary, name), uid, gid);
  await chown(temporary, uid, gid);
}

/** Removes the directory of a run with all its contents. The run may belong to an earlier process of the service. */
export async function removeRunDirectory(path: string): Promise<void> {
  const isHandedOver = ((await lstat(path).catch(() => undefined))?.mode ?? 0) % 0o1000 === HANDED_OVER;
  for (const { entry, uid, gid } of isHandedOver ? await entriesOfOthers(path) : []) {
    // `rm` runs as the owner of the entry. If root removed the entry, a remaining process of the owner could replace a
    // directory with a link while root removes it.
    const remover = spawn('/bin/rm', ['-rf', '--', entry], { uid, gid, cwd: '/', env: {}, stdio: 'ignore' });
    await once(remover, 'exit');
    // The `rm` process cannot remove the entry itself, because the directory around the entry belongs to the service.
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

/** Returns the name prefix of the temporary directories of one attempt. */
export function temporaryPrefix(attempt: { jobId: string; attempt: number }): string {
  return `flowhook-${attempt.jobId}-${attempt.attempt}-`;
}

/** Removes the temporary directories of an attempt, which remain if the server was killed during the attempt. */
export async function removeLeftoverFiles(attempt: { jobId: string; attempt: number }): Promise<void> {
  const prefix = temporaryPrefix(attempt);
  for (const name of await readdir(tmpdir())) {
    if (name.startsWith(prefix)) await removeRunDirectory(join(tmpdir(), name));
  }
}

const MAX_STATE_BYTES = 1 << 20;

/** The absolute paths of the files. `config` is undefined if the definition has no `config`. */
export interface RunFiles {
  state: string;
  config: string | undefined;
}

/** Writes both files. Only this user may read them, because the configuration may contain secrets. */
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

/** Replaces `${state}` and `${config}` in a command with the paths of the files. */
export function withFiles(command: readonly string[], files: RunFiles): string[] {
  return command.map((argument) =>
    argument.replace(/\$\{(state|config)\}/g, (reference, name: keyof RunFiles) => files[name] ?? reference),
  );
}

/** Returns environment variables with the paths of the files, for programs that do not take paths as arguments. */
export function filesEnvironment(files: RunFiles): Record<string, string> {
  return {
    FLOWHOOK_STATE: files.state,
    ...(files.config === undefined ? {} : { FLOWHOOK_CONFIG: files.config }),
  };
}

/**
 * Reads the state that a program has left in its file. `state` is undefined if the state is unchanged or the file no
 * longer exists. `mistake` says why the state cannot be stored.
 */
export async function readStateLeft(
  file: string,
  before: string,
): Promise<{ state: unknown } | { mistake: string }> {
  const text = await readSmallFile(file);
  if (text === undefined || text === before) return { state: undefined };
  if (text === 'unusable') {
    return { mistake: 'The state file at the path in FLOWHOOK_STATE is not a regular file of at most 1 MiB' };
  }
  try {
    const state: unknown = JSON.parse(text);
    return { state: JSON.stringify(state) === before ? undefined : state };
  } catch (error) {
    return {
      mistake: `The state file at the path in FLOWHOOK_STATE is not valid JSON: ${(error as Error).message}`,
    };
  }
}

/**
 * Reads a file without following links and without blocking, because a program may have replaced the file with a link,
 * a pipe or a device.
 */
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
    // If runs have a user of their own, the service reads the file as root. It must read only files that belong to this
    // user.
    const { uid } = await stat(dirname(path));
    if (uid !== process.getuid?.() && stats.uid !== uid) return 'unusable';
    return await file.readFile('utf8');
  } catch {
    return 'unusable';
  } finally {
    await file.close();
  }
}
