/** Checks a database file for damage, in a low-priority process of its own. */
import { runChildTask } from './child-task.ts';
import type { IntegrityTask } from './integrity-process.ts';

/** Returns what is wrong, as sentences; undefined if the signal ended the check. */
export async function findDamage(task: IntegrityTask, signal: AbortSignal): Promise<string[] | undefined> {
  const options = { program: './integrity-process', purpose: 'The process that looks for damage', signal };
  try {
    return await runChildTask<string[]>(task, options);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}
