/** Finds the processes of runs in /proc, to send them signals or to check that none are left. Linux only. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface RunProcess {
  pid: number;
  jobId: string;
  /** Whether the process is the program or one of its children, and not the watcher of the group. */
  isProgram: boolean;
}

/** All running processes of runs in a workflows directory. */
export function runProcesses(directory: string): RunProcess[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      const found = processOf(Number(entry), directory);
      return found === undefined ? [] : [found];
    });
}

/** Sends a signal to a process, if its pid still belongs to the same run. */
export function signalRun(found: RunProcess, signal: NodeJS.Signals, directory: string): void {
  if (processOf(found.pid, directory)?.jobId !== found.jobId) return;
  try {
    process.kill(found.pid, signal);
  } catch {
    // The process has already ended.
  }
}

function processOf(pid: number, directory: string): RunProcess | undefined {
  try {
    // A zombie process has no working directory.
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
