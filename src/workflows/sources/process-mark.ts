/** Tells one process from a later one with the same pid, and whether a process group still lives. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ProcessMark } from '../../model/job.ts';

/** How long a group that was sent SIGKILL may take to vanish before nobody waits for it any longer. */
const VANISH_MS = 5_000;

/**
 * Marks a process by what no other process ever has: on Linux the boot and the clock tick in which it started
 * (`/proc/<pid>/stat`, field 22), elsewhere its start time as `ps` prints it. Nothing when there is no such
 * process. On Linux the answer is read before the first turn of the event loop, so that a child that ends at
 * once is still marked.
 */
export async function markOf(pid: number): Promise<ProcessMark | undefined> {
  const startedAt = process.platform === 'linux' ? startOnLinux(pid) : await startByPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** Whether the marked process is still there, as itself. */
export async function isSameProcess(mark: ProcessMark): Promise<boolean> {
  return (await markOf(mark.pid))?.startedAt === mark.startedAt;
}

/** Sends a signal to a whole process group; a group that is gone is no error. */
export function signalGroup(groupId: number, signal: NodeJS.Signals): void {
  // 0 would be the server's own group and -1 every process there is.
  if (!Number.isSafeInteger(groupId) || groupId <= 1) return;
  try {
    process.kill(-groupId, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** Waits until nothing of a group runs any longer; answers false when it has not vanished in 5 seconds. */
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
  // A dead process that nobody reaps still answers to signals: in a container whose first process does not
  // reap, for ever. So on Linux the group counts as gone when only such processes are left.
  if (process.platform !== 'linux') return true;
  let reads = 0;
  for (const pid of await processes()) {
    if (++reads % READS_A_TURN === 0) await nextTurn();
    const [state, , group] = statOf(pid) ?? [];
    if (Number(group) === groupId && state !== 'Z' && state !== 'X') return true;
  }
  return false;
}

/** Files of /proc that are read in one turn of the event loop: each takes some 20 µs. */
export const READS_A_TURN = 100;

/** Every process there is (Linux). */
export async function processes(): Promise<number[]> {
  return (await readdir('/proc')).map(Number).filter(Number.isInteger);
}

let boot: string | undefined;

function startOnLinux(pid: number): string | undefined {
  // Field 3 is the first after the name, so field 22 is number 19.
  const ticks = statOf(pid)?.[19];
  if (ticks === undefined) return undefined;
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${boot}/${ticks}`;
}

/** The fields of `/proc/<pid>/stat` after the program's name, which may itself hold spaces and brackets. */
function statOf(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
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
