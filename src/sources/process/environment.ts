/** Prepares what a child process needs to start: its user, environment variables, program and working directory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { delimiter, dirname, join, resolve } from 'node:path';
import { countWords } from '../../std/amounts.ts';
import { isExecutable, programFile } from '../../std/own-files.ts';

const KEPT = ['HOME', 'LANG', 'TZ', 'USER'];
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

/**
 * Returns the environment variables that a child inherits from the server. There are few, because the server's settings
 * include secrets. The directory of the running Node comes last in PATH, so that `node` is always found, except by the executable.
 */
export function cleanEnvironment(
  server: ReadonlyMap<string, string>,
  runAs: RunAs | undefined,
): Record<string, string> {
  const kept = [...server].filter(([name]) => KEPT.includes(name) || name.startsWith('LC_'));
  const { HOME, USER, ...rest } = Object.fromEntries(kept);
  const own = { ...(HOME === undefined ? {} : { HOME }), ...(USER === undefined ? {} : { USER }) };
  return {
    ...rest,
    ...(runAs === undefined ? own : identity(runAs)),
    PATH: `${server.get('PATH') || DEFAULT_PATH}${delimiter}${dirname(process.execPath)}`,
  };
}

/**
 * Returns the variables that depend on the user. If the user has no home directory, `launcher.ts` sets HOME to the TMPDIR
 * of the run.
 */
function identity({ user, home }: RunAs): Record<string, string> {
  return { USER: user, ...(home === undefined ? {} : { HOME: home }) };
}

/** The variables that identify the run to the child. */
export function runEnvironment(run: {
  workflowId: string;
  jobId: string;
  attempt: number;
}): Record<string, string> {
  return {
    FLOWHOOK_WORKFLOW: run.workflowId,
    FLOWHOOK_JOB: run.jobId,
    FLOWHOOK_ATTEMPT: String(run.attempt),
  };
}

/**
 * Returns the absolute path of a program. A name with a slash is relative to the directory. Any other name is looked up
 * in `path`.
 *
 * @throws Error if the program does not exist or cannot be run
 */
export async function findProgram(name: string, input: { directory: string; path: string }): Promise<string> {
  const candidates = name.includes('/')
    ? [resolve(input.directory, name)]
    : input.path.split(delimiter).map((folder) => join(resolve(input.directory, folder), name));
  let found: string | undefined;
  for (const candidate of candidates) {
    const stats = await stat(candidate).catch(() => undefined);
    if (stats === undefined) continue;
    found ??= stats.isDirectory()
      ? `${candidate} is a directory`
      : `${candidate} is not executable (chmod +x)`;
    if (!stats.isFile()) continue;
    const runs = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return candidate;
  }
  if (found !== undefined) throw new Error(`The command ${name} cannot be run: ${found}`);
  throw new Error(
    name.includes('/')
      ? `The command ${name} was not found: the file ${candidates[0]} does not exist`
      : `The command ${name} was not found in any of the ${countWords(candidates.length, 'folder')} of PATH on this machine. Install it, or specify its full path`,
  );
}

/** @throws Error if the working directory of the workflow does not exist */
export async function requireDirectory(directory: string): Promise<void> {
  const stats = await stat(directory).catch(() => undefined);
  if (!stats?.isDirectory()) {
    throw new Error(
      `The directory ${directory}, in which this workflow runs, does not exist on this machine. ` +
        'Create it, or set the directory of the workflow files with --workflows or FLOWHOOK_WORKFLOWS',
    );
  }
}

/**
 * The system user that sources run as (`FLOWHOOK_RUN_AS`), if it differs from the service's own user. Sources can then
 * read neither the files nor the environment (`/proc/<pid>/environ`) of the service, which contain keys and secrets.
 */
export interface RunAs {
  uid: number;
  gid: number;
  /** The value of USER. */
  user: string;
  /** The value of HOME. If undefined, HOME is the TMPDIR of the run. */
  home: string | undefined;
}

const USERS = '/etc/passwd';

/**
 * Finds a system user by name or number. If the text is `uid:gid`, the user need not exist.
 *
 * @param text `name`, `uid` or `uid:gid`
 * @returns `mistake` if there is no such user, or if the user or group is root; the caller prints it after the name of
 *   the setting
 */
export function findRunAs(text: string, users: string = readUsers()): RunAs | { mistake: string } {
  const row = users
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name, , uid]) => name === text || uid === text.split(':', 1)[0]);
  const numbers = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(text);
  const uid = numbers === null ? row?.[2] : numbers[1];
  const gid = numbers?.[2] ?? row?.[3];
  if (uid === undefined) return { mistake: `must be a user in ${USERS}, or uid:gid` };
  if (gid === undefined) return { mistake: `must be uid:gid, because no user in ${USERS} has this number` };
  if (Number(uid) === 0) return { mistake: 'must not be root' };
  // The group of root can read files that are hidden from all other users.
  if (Number(gid) === 0) return { mistake: "must not have root's group" };
  return { uid: Number(uid), gid: Number(gid), user: row?.[0] ?? uid, home: row?.[5] || undefined };
}

function readUsers(): string {
  return existsSync(USERS) ? readFileSync(USERS, 'utf8') : '';
}

/**
 * Checks that sources can run as this user on this machine.
 *
 * @param workflowsDirectory is not checked if it does not exist
 * @throws Error that says what prevents sources from running
 */
export async function requireRunAs(runAs: RunAs | undefined, workflowsDirectory: string): Promise<void> {
  if (runAs === undefined) return;
  if (process.getuid?.() !== 0) {
    throw new Error(
      `FLOWHOOK_RUN_AS is ${runAs.user}, but only a service that is started as root can run sources as another user. ` +
        'Start it as root, or remove FLOWHOOK_RUN_AS',
    );
  }
  const needed = [
    ['x', process.execPath],
    ...(isExecutable ? [] : [['r', programFile('module-harness')]]),
    ...(existsSync(workflowsDirectory) ? [['x', workflowsDirectory]] : []),
  ] as [access: 'r' | 'x', path: string][];
  for (const [access, path] of needed) {
    if (await mayAccess(runAs, access, path)) continue;
    throw new Error(
      `The user ${runAs.user}, which FLOWHOOK_RUN_AS sets for sources, may not ${access === 'r' ? 'read' : 'enter or run'} ` +
        `${path}. Allow this for ${path} and the directories above it`,
    );
  }
}

/**
 * Returns whether the user may access the path. A process of this user tests it, so that the groups of the user and the
 * permissions of the directories above the path count too.
 */
export async function mayAccess({ uid, gid }: RunAs, access: 'r' | 'x', path: string): Promise<boolean> {
  const argv = ['-c', 'test "$1" "$2"', 'sh', `-${access}`, path];
  const asking = spawn('/bin/sh', argv, { uid, gid, cwd: '/', env: {}, stdio: 'ignore' });
  const [code] = (await once(asking, 'exit')) as [number | null];
  return code === 0;
}
