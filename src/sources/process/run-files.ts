/**
 * The TMPDIR of a run, and the files in it. If runs have a user of their own, TMPDIR is inside a directory of the
 * service's user, which the run can enter but not change. Otherwise the run could put a link to another file in place
 * of a file that the service reads or removes as root.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { MAX_STATE_BYTES } from '../../model/workflow.ts';
import { parseAsWritten } from '../../std/exact-json.ts';
import type { RunAs } from './environment.ts';

/** The user and the group that own the files of a run. */
type Owner = Pick<RunAs, 'uid' | 'gid'>;

/** The mode of a directory that contains the TMPDIR of another user. The group of this user may enter the directory. */
const HANDED_OVER = 0o710;

export interface RunDirectory {
  /** The directory to remove when the run ends. */
  path: string;
  /** The TMPDIR of the run, which is either `path` or a directory inside `path`. */
  temporary: string;
}

/** @param prefix the absolute path of the directory, to which six characters are added */
export function makeRunDirectory(prefix: string, owner: Owner | undefined): RunDirectory {
  const path = mkdtempSync(prefix);
  if (owner === undefined) return { path, temporary: path };
  chownSync(path, 0, owner.gid);
  chmodSync(path, HANDED_OVER);
  const temporary = join(path, 'tmp');
  mkdirSync(temporary, { mode: 0o700 });
  return { path, temporary };
}

/** Makes the user of the run the owner of the TMPDIR and of the files in it. */
export function handOver({ temporary }: RunDirectory, owner: Owner | undefined): void {
  if (owner === undefined) return;
  const { uid, gid } = owner;
  for (const name of readdirSync(temporary)) lchownSync(join(temporary, name), uid, gid);
  chownSync(temporary, uid, gid);
}

/**
 * Removes the directory of a run without waiting if it contains only these files. Use it only if all files belong to the
 * service's own user.
 *
 * @returns whether the directory is gone
 */
export function removeSmallDirectory(path: string, names: readonly string[]): boolean {
  try {
    for (const name of names) unlinkSync(join(path, name));
    rmdirSync(path);
    return true;
  } catch {
    return false;
  }
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

/** The contents of the files that a command gets. `config` is undefined if the definition has no `config`. */
export interface FileContents {
  state: string;
  config: string | undefined;
}

/** The absolute paths of the files. */
export interface RunFiles {
  state: string;
  config: string | undefined;
}

/** Writes both files. Only this user may read them, because the configuration may contain secrets. */
export function writeRunFiles(directory: string, { state, config }: FileContents): RunFiles {
  const files = {
    state: join(directory, 'state.json'),
    config: config === undefined ? undefined : join(directory, 'config.json'),
  };
  writeFileSync(files.state, state, { mode: 0o600 });
  if (files.config !== undefined) writeFileSync(files.config, config as string, { mode: 0o600 });
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
 * Returns the state that a program has left in its file, on one line. `state` is undefined if the state is unchanged. `mistake` says
 * why the state cannot be stored.
 *
 * @param left the result of `readStateLeft`
 */
export function stateLeft(
  left: StateLeft | undefined,
  before: string,
): { state: string | undefined } | { mistake: string } {
  if (left === undefined) return { state: undefined };
  if ('unusable' in left) {
    return { mistake: 'The state file at the path in FLOWHOOK_STATE is not a regular file of at most 1 MiB' };
  }
  try {
    const state = JSON.stringify(parseAsWritten(left.text));
    return { state: state === before ? undefined : state };
  } catch (error) {
    return {
      mistake: `The state file at the path in FLOWHOOK_STATE is not valid JSON: ${(error as Error).message}`,
    };
  }
}

/** What a program has left in its state file. */
export type StateLeft = { text: string } | { unusable: true };

/**
 * Reads the state file without following links and without blocking, because a program may have replaced the file with
 * a link, a pipe or a device. Returns undefined if the file is unchanged or no longer exists.
 */
export function readStateLeft(path: string, before: string): StateLeft | undefined {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : { unusable: true };
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile() || stats.size > MAX_STATE_BYTES) return { unusable: true };
    // If runs have a user of their own, the service reads the file as root. It must read only files that belong to this
    // user.
    const { uid } = statSync(dirname(path));
    if (uid !== process.getuid?.() && stats.uid !== uid) return { unusable: true };
    const text = readFileSync(file, 'utf8');
    return text === before ? undefined : { text };
  } catch {
    return { unusable: true };
  } finally {
    closeSync(file);
  }
}
