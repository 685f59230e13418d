/** Linux's table of processes, `/proc`. */
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';

/** Files of /proc to read in one turn of the event loop: each takes some 20 µs. */
export const READS_A_TURN = 100;

/** The pids of all processes. */
export async function processes(): Promise<number[]> {
  return (await readdir('/proc')).map(Number).filter(Number.isInteger);
}

export interface ProcessStat {
  /** One letter, such as `Z` for a process that has ended and waits to be reaped. */
  state: string;
  groupId: number;
  /** Clock ticks from the boot of the machine to the start of the process. */
  startTicks: string;
  residentPages: number;
}

/** What `/proc/<pid>/stat` says; undefined when there is no such process. */
export function statOf(pid: number): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The program's name may hold spaces and brackets. The fields after it count from 3 in proc_pid_stat(5).
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
