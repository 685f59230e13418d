/**
 * The system user as whom the children of sources run, where that is not the service's own (`FLOWHOOK_RUN_AS`). They can
 * then read neither the service's files nor its environment (`/proc/<pid>/environ`), which hold keys and secrets.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface RunAs {
  uid: number;
  gid: number;
  /** What USER is set to. */
  user: string;
  /** What HOME is set to; undefined: the TMPDIR of the run. */
  home: string | undefined;
}

const USERS = '/etc/passwd';

/**
 * Finds the user by name or by number, or takes both numbers as they are.
 *
 * @param text `name`, `uid` or `uid:gid`
 * @returns a sentence after the setting's name when there is no such user, or it or its group is root
 */
export function findRunAs(text: string, users: string = readUsers()): RunAs | { mistake: string } {
  const row = users
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name, , uid]) => name === text || uid === text.split(':', 1)[0]);
  const numbers = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(text);
  const uid = numbers === null ? row?.[2] : numbers[1];
  const gid = numbers?.[2] ?? row?.[3];
  if (uid === undefined) return { mistake: `names no user of ${USERS}: give one, or uid:gid` };
  if (gid === undefined) return { mistake: `must be uid:gid, because no user of ${USERS} has this number` };
  if (Number(uid) === 0) return { mistake: 'must be another user than root' };
  // Root's group can read what is kept from all others.
  if (Number(gid) === 0) return { mistake: "must be of another group than root's" };
  return { uid: Number(uid), gid: Number(gid), user: row?.[0] ?? uid, home: row?.[5] || undefined };
}

function readUsers(): string {
  return existsSync(USERS) ? readFileSync(USERS, 'utf8') : '';
}

/**
 * Whether children can run as this user here.
 *
 * @param workflowsDirectory may be missing
 * @throws Error with a sentence about what prevents it
 */
export async function requireRunAs(runAs: RunAs | undefined, workflowsDirectory: string): Promise<void> {
  if (runAs === undefined) return;
  if (process.getuid?.() !== 0) {
    throw new Error(
      `FLOWHOOK_RUN_AS names the user ${runAs.user}, and only a service that starts as root can run sources as another ` +
        'user. Start it as root, or leave FLOWHOOK_RUN_AS out',
    );
  }
  const needed = [
    ['x', process.execPath],
    ['r', fileURLToPath(new URL(`./module-harness${extname(import.meta.url)}`, import.meta.url))],
    ...(existsSync(workflowsDirectory) ? [['x', workflowsDirectory]] : []),
  ] as [access: 'r' | 'x', path: string][];
  for (const [access, path] of needed) {
    if (await mayAccess(runAs, access, path)) continue;
    throw new Error(
      `The user ${runAs.user}, as whom FLOWHOOK_RUN_AS runs sources, may not ${access === 'r' ? 'read' : 'enter or run'} ` +
        `${path}. Allow it, also for the directories above it`,
    );
  }
}

/** Asks the system itself, as that user: it counts groups, and the directories above. */
export async function mayAccess({ uid, gid }: RunAs, access: 'r' | 'x', path: string): Promise<boolean> {
  const argv = ['-c', 'test "$1" "$2"', 'sh', `-${access}`, path];
  const asking = spawn('/bin/sh', argv, { uid, gid, cwd: '/', env: {}, stdio: 'ignore' });
  const [code] = (await once(asking, 'exit')) as [number | null];
  return code === 0;
}
