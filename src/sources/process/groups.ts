/**
 * Process groups of runs: identifies them (the system reuses pids), signals them, waits for their end, and watches
 * their memory. Node's heap limit does not cover Buffers, and a limit on one process does not cover its children, so
 * the resident memory of each group is polled. The process table is read once for all runs.
 */
import { execFile } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ProcessMark } from '../../model/job.ts';

/** Maximum number of files of /proc to read in one turn of the event loop. Reading each file takes about 20 µs. */
const READS_A_TURN = 100;

/** The pids of all processes. */
export async function processes(): Promise<number[]> {
  return (await readdir('/proc')).map(Number).filter(Number.isInteger);
}

interface ProcessStat {
  /** The state of the process as one letter, such as `Z` for a zombie. */
  state: string;
  groupId: number;
  /** The start of the process, in clock ticks since the boot of the machine. */
  startTicks: string;
  residentPages: number;
}

/** Reads `/proc/<pid>/stat`. Returns undefined if there is no such process. */
function statOf(pid: number): ProcessStat | undefined {
  try {
    const text = readSmall(`/proc/${pid}/stat`);
    // The name of the program may contain spaces and parentheses. The first field after the name is field 3 in
    // proc_pid_stat(5).
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ', 22);
    return {
      state: fields[0] ?? '',
      groupId: Number(fields[2]),
      startTicks: fields[19] ?? '',
      residentPages: Number(fields[21]),
    };
  } catch {
    return undefined;
  }
}

const SMALL = Buffer.alloc(1_024);

/**
 * Reads a file of /proc that is shorter than 1 KiB. `readFileSync` would allocate 64 KiB for it, because /proc states no
 * sizes; these buffers caused a collection of the whole heap every few jobs.
 */
function readSmall(path: string): string {
  const file = openSync(path, 'r');
  try {
    return SMALL.toString('latin1', 0, readSync(file, SMALL, 0, SMALL.length, 0));
  } finally {
    closeSync(file);
  }
}

/** How long to wait for a process group to end after SIGKILL. */
const VANISH_MS = 5_000;

/**
 * Returns a mark that identifies a process by its pid and its start. On Linux, the start is the boot id and the clock
 * tick (`/proc/<pid>/stat`, field 22). Elsewhere, it is the start time that `ps` prints. Undefined if there is no such
 * process. On Linux, the start is read synchronously, so that even a child that ends immediately is identified.
 */
export async function markOf(pid: number): Promise<ProcessMark | undefined> {
  const startedAt = process.platform === 'linux' ? startOnLinux(pid) : await startByPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** Returns whether the marked process still runs, which is false if another process has reused its pid. */
export async function isSameProcess(mark: ProcessMark): Promise<boolean> {
  return (await markOf(mark.pid))?.startedAt === mark.startedAt;
}

/** Sends a signal to a process group. Does nothing if the group no longer exists. */
export function signalGroup(groupId: number, signal: NodeJS.Signals): void {
  // The id 0 would mean the server's own group, and -1 every process of this user.
  if (!Number.isSafeInteger(groupId) || groupId <= 1) return;
  try {
    process.kill(-groupId, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** Waits until no process of a group is running. Returns false if one is still running after 5 s. */
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
  // Zombies still accept signals. In a container whose first process does not reap zombies, they stay permanently. So
  // on Linux, a group that contains only zombies counts as gone.
  if (process.platform !== 'linux') return true;
  let reads = 0;
  for (const pid of await processes()) {
    if (++reads % READS_A_TURN === 0) await nextTurn();
    const stat = statOf(pid);
    if (stat?.groupId === groupId && stat.state !== 'Z' && stat.state !== 'X') return true;
  }
  return false;
}

/**
 * Kills the process group of a recorded process, unless the pid of this process was reused. Waits until the group is
 * gone, at most 5 s. Usually there is no group to kill, because the launcher kills all groups when the server ends.
 *
 * @returns whether a group was killed
 */
export async function killLeftover(mark: ProcessMark): Promise<boolean> {
  if (mark.pid === process.pid || !(await isSameProcess(mark))) return false;
  signalGroup(mark.pid, 'SIGKILL');
  await groupGone(mark.pid);
  return true;
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

const TICK_MS = 250;
/**
 * After this many ticks, processes outside the watched groups are read again, because their pids may have been reused.
 */
const FORGET_AFTER = 8;

interface Watched {
  groupId: number;
  limitBytes: number;
  onExcess(bytes: number): void;
}

interface Member {
  pid: number;
  residentBytes: number;
}

const watched = new Set<Watched>();
let timer: NodeJS.Timeout | undefined;
let looking = false;

/**
 * Watches the memory of a process group. When its processes together exceed the limit, calls `onExcess` once with the
 * measured bytes.
 *
 * @returns a function that ends the watch
 */
export function watchMemory(group: Watched): () => void {
  watched.add(group);
  timer ??= setInterval(look, TICK_MS).unref();
  return () => {
    watched.delete(group);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

async function look(): Promise<void> {
  if (looking) return;
  looking = true;
  try {
    const groups = new Set([...watched].map(({ groupId }) => groupId));
    const members = await (process.platform === 'linux' ? membersByProc(groups) : membersByPs(groups));
    for (const group of watched) {
      const all = members.get(group.groupId) ?? [];
      if (sum(all.map(({ residentBytes }) => residentBytes)) <= group.limitBytes) continue;
      const bytes = await withoutDoubles(all);
      if (bytes <= group.limitBytes || !watched.delete(group)) continue;
      group.onExcess(bytes);
    }
  } catch {
    // The process table could not be read, so the next tick reads it again.
  } finally {
    looking = false;
  }
}

/**
 * The pids of processes that are not in a watched group. They are skipped, so that a tick reads only few processes even
 * on a busy machine. A process changes its group only right after its start.
 */
let strangers = new Set<number>();
let looks = 0;

async function membersByProc(groups: ReadonlySet<number>): Promise<Map<number, Member[]>> {
  const forget = looks++ % FORGET_AFTER === 0;
  const known = forget ? new Set<number>() : strangers;
  strangers = new Set();
  const members: (Member & { group: number })[] = [];
  let reads = 0;
  for (const pid of await processes()) {
    // There may be thousands of processes, so the loop yields to the event loop from time to time.
    if (!known.has(pid) && ++reads % READS_A_TURN === 0) await nextTurn();
    const stat = known.has(pid) ? undefined : statOf(pid);
    if (stat !== undefined && groups.has(stat.groupId)) {
      members.push({ pid, group: stat.groupId, residentBytes: stat.residentPages * PAGE_BYTES });
    } else strangers.add(pid);
  }
  return Map.groupBy(members, ({ group }) => group);
}

const PAGE_BYTES = process.platform === 'linux' ? pageBytes() : 1;

/** Computes the size of a memory page. Linux reports the resident memory of this process both in pages and in kB. */
function pageBytes(): number {
  try {
    const pages = Number(readFileSync('/proc/self/statm', 'latin1').split(' ')[1]);
    const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]);
    const size = 2 ** Math.round(Math.log2((kilobytes * 1024) / pages));
    return size >= 4_096 && size <= 65_536 ? size : 4_096;
  } catch {
    return 4_096;
  }
}

/**
 * Returns the memory of a group with each shared page counted once (PSS). After a fork, resident memory would count the
 * same page once for each process. Reading the PSS is expensive, so it is read only for a group that seems to exceed
 * its limit.
 */
async function withoutDoubles(members: readonly Member[]): Promise<number> {
  if (process.platform !== 'linux' || members.length < 2) return sum(members.map((one) => one.residentBytes));
  const shares = members.map(async ({ pid, residentBytes }) => {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1').catch(() => '');
    const kilobytes = /^Pss:\s+(\d+) kB/m.exec(text)?.[1];
    return kilobytes === undefined ? residentBytes : Number(kilobytes) * 1024;
  });
  return sum(await Promise.all(shares));
}

async function membersByPs(groups: ReadonlySet<number>): Promise<Map<number, Member[]>> {
  const { stdout } = await promisify(execFile)('/bin/ps', ['-axo', 'pid=,pgid=,rss='], {
    maxBuffer: 16 * 1024 * 1024,
  });
  const members = stdout.split('\n').flatMap((line) => {
    const [pid = 0, group = 0, kilobytes = 0] = line.trim().split(/\s+/).map(Number);
    return groups.has(group) ? [{ pid, group, residentBytes: kilobytes * 1024 }] : [];
  });
  return Map.groupBy(members, ({ group }) => group);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
