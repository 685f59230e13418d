/** The processes of runs, found in /proc: to be disturbed, or to be missed when nothing should be left. Linux only. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface RunProcess {
  pid: number;
  jobId: string;
  /** The program or something that it started, and not what watches over the group. */
  isProgram: boolean;
}

/** Every living process that a run below a workflows directory has started. */
export function runProcesses(directory: string): RunProcess[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      const found = processOf(Number(entry), directory);
      return found === undefined ? [] : [found];
    });
}

/** Sends a signal to a process, if it is still the one that was found. */
export function signalRun(found: RunProcess, signal: NodeJS.Signals, directory: string): void {
  if (processOf(found.pid, directory)?.jobId !== found.jobId) return;
  try {
    process.kill(found.pid, signal);
  } catch {
    // It has ended by itself.
  }
}

function processOf(pid: number, directory: string): RunProcess | undefined {
  try {
    // A dead one that nobody has reaped yet has no working directory any more.
    if (!readlinkSync(`/proc/${pid}/cwd`).startsWith(directory)) return undefined;
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
    const job = environment.find((entry) => entry.startsWith('FLOWHOOK_JOB='));
    if (job === undefined) return undefined;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
    return { pid, jobId: job.slice('FLOWHOOK_JOB='.length), isProgram: !command.includes('kill -KILL 0') };
  } catch {
    return undefined;
  }
}
