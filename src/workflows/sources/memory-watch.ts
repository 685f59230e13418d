/**
 * Watches how much memory the processes of each run hold together, and says when it is too much.
 *
 * A heap flag does not bound Buffers, and a limit on one process does not bound its children, so the resident
 * memory of the whole group is added up. One look at the process table serves all runs.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { processes, READS_A_TURN } from './process-mark.ts';

const TICK_MS = 250;
/** A process that belongs to nobody here is asked again after so many looks: its number may be another's by then. */
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
 * Calls `onExcess` once, with what was measured, when the processes of a group hold more than the limit. Answers
 * how to end the watch.
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
    // A process table that cannot be read now can be at the next look.
  } finally {
    looking = false;
  }
}

/**
 * Processes of no group that is watched, so that most of a busy machine need not be read each time. A process
 * changes its group only at its very start.
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
    // A run may have started thousands: others have their turn in between.
    if (!known.has(pid) && ++reads % READS_A_TURN === 0) await nextTurn();
    const found = known.has(pid) ? undefined : statOf(pid);
    if (found !== undefined && groups.has(found.group)) members.push({ pid, ...found });
    else strangers.add(pid);
  }
  return Map.groupBy(members, ({ group }) => group);
}

/** The group of a process and its resident memory, or nothing when it has ended. */
function statOf(pid: number): { group: number; residentBytes: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // After the name, which may hold anything: state, parent, group (field 5), and resident pages as field 24.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ', 22);
    return { group: Number(fields[2]), residentBytes: Number(fields[21]) * PAGE_BYTES };
  } catch {
    return undefined;
  }
}

const PAGE_BYTES = process.platform === 'linux' ? pageBytes() : 1;

/** Linux tells the resident memory of this very process in pages and in kB. */
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
 * The memory of several processes, what they share divided among those that share it: after a fork the same pages
 * would be counted once for each. This is dear, so it is asked only of a group that seems to be too large.
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
