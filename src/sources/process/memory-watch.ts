/**
 * Enforces the memory limit of runs: polls the resident memory of each run's process group.
 *
 * Node's heap limit does not cover Buffers, and a limit on one process does not cover its children. One reading of the
 * process table serves all runs.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { processes, READS_A_TURN, statOf } from './proc.ts';

const TICK_MS = 250;
/** Processes of other groups are read again after so many ticks: their pids may have been reused by then. */
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
 * Calls `onExcess` once, with the bytes measured, when the processes of a group together exceed the limit.
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
    // The process table could not be read this time.
  } finally {
    looking = false;
  }
}

/**
 * Processes of groups that are not watched, so that most of a busy machine is not read at each tick. A process changes
 * its group only right after its start.
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
    // There may be thousands: yield to the event loop in between.
    if (!known.has(pid) && ++reads % READS_A_TURN === 0) await nextTurn();
    const stat = known.has(pid) ? undefined : statOf(pid);
    if (stat !== undefined && groups.has(stat.groupId)) {
      members.push({ pid, group: stat.groupId, residentBytes: stat.residentPages * PAGE_BYTES });
    } else strangers.add(pid);
  }
  return Map.groupBy(members, ({ group }) => group);
}

const PAGE_BYTES = process.platform === 'linux' ? pageBytes() : 1;

/** Linux shows the resident memory of this process both in pages and in kB. */
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
 * The memory of a group with shared pages counted once (PSS): after a fork, the same pages would count for each process.
 * Reading it is expensive, so this is done only for a group that seems to be over its limit.
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
