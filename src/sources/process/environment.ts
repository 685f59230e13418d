/** What a child process needs to start: its environment variables, its program and its working directory. */

import { access, constants, stat } from 'node:fs/promises';
import { delimiter, dirname, join, resolve } from 'node:path';
import { countWords } from '../../std/amounts.ts';
import type { RunAs } from './run-as.ts';

const KEPT = ['HOME', 'LANG', 'TZ', 'USER'];
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

/**
 * The only variables of the server that a child inherits: the server's settings hold secrets. The folder of this Node
 * comes last in PATH, so that `node` is always found.
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

/** Without a HOME of its own, a run has its TMPDIR as one: see `child.ts`. */
function identity({ user, home }: RunAs): Record<string, string> {
  return { USER: user, ...(home === undefined ? {} : { HOME: home }) };
}

/** Tells a child which run it belongs to. */
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
 * The absolute path of a program: a name with a slash is relative to the directory, any other is looked up in `path`.
 *
 * @throws Error when there is no such program or it cannot be run
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
      ? `The command ${name} does not exist: there is no ${candidates[0]}`
      : `The command ${name} was not found in any of the ${countWords(candidates.length, 'folder')} of PATH on this machine. Install it, or give its path`,
  );
}

/** @throws Error when the working directory of a workflow does not exist */
export async function requireDirectory(directory: string): Promise<void> {
  const stats = await stat(directory).catch(() => undefined);
  if (!stats?.isDirectory()) {
    throw new Error(
      `The directory ${directory}, in which this workflow runs, does not exist on this machine. ` +
        'Create it, or name the directory of the workflow files with --workflows or FLOWHOOK_WORKFLOWS',
    );
  }
}
