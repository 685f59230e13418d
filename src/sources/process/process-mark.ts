/** Identifies a process beyond its pid, which the system reuses, and signals and awaits process groups. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ProcessMark } from '../../model/job.ts';
import { processes, READS_A_TURN, statOf } from './proc.ts';

/** How long to wait for a group to vanish after SIGKILL. */
const VANISH_MS = 5_000;

/**
 * Identifies a process by its pid and its start: on Linux the boot id and the clock tick (`/proc/<pid>/stat`, field
 * 22), elsewhere the start time as `ps` prints it. Undefined when there is no such process. On Linux this is read
 * synchronously, so that a child that ends at once is still identified.
 */
export async function markOf(pid: number): Promise<ProcessMark | undefined> {
  const startedAt = process.platform === 'linux' ? startOnLinux(pid) : await startByPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** Whether the marked process still runs, and its pid has not been reused. */
export async function isSameProcess(mark: ProcessMark): Promise<boolean> {
  return (await markOf(mark.pid))?.startedAt === mark.startedAt;
}

/** Sends a signal to a process group; a group that is gone is no error. */
export function signalGroup(groupId: number, signal: NodeJS.Signals): void {
  // 0 would be the server's own group, and -1 every process of this user.
  if (!Number.isSafeInteger(groupId) || groupId <= 1) return;
  try {
    process.kill(-groupId, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** Waits until no process of a group runs any more; false when one still does after 5 s. */
export async function groupGone(groupId: number): Promise<boolean> {
  const deadline = performance.now() + VANISH_MS;
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, 50)) {
    if (!(await groupRuns(groupId))) return true;
    if (performance.now() > deadline) return false;
    await wait(pauseMs);
  }
}

async function groupRuns(groupId: number): Promise<boolean> {
  try {
    process.kill(-groupId, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  // Zombies still accept signals, and stay for ever in a container whose first process does not reap them. So on
  // Linux the group counts as gone when only zombies are left.
  if (process.platform !== 'linux') return true;
  let reads = 0;
  for (const pid of await processes()) {
    if (++reads % READS_A_TURN === 0) await nextTurn();
    const stat = statOf(pid);
    if (stat?.groupId === groupId && stat.state !== 'Z' && stat.state !== 'X') return true;
  }
  return false;
}

let boot: string | undefined;

function startOnLinux(pid: number): string | undefined {
  const ticks = statOf(pid)?.startTicks;
  if (ticks === undefined) return undefined;
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${boot}/${ticks}`;
}

async function startByPs(pid: number): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)('/bin/ps', ['-o', 'lstart=', '-p', String(pid)], {
      env: { LC_ALL: 'C', TZ: 'UTC' },
    });
    return stdout.trim() || undefined;
  } catch {
    return undefined;
  }
}
