/** Creates directories that users name. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a directory and its missing parents, one at a time: below /proc, `mkdirSync` with `recursive` never returns.
 *
 * @param mode of the new directories; the default lets only their owner access them
 * @throws Error if a directory cannot be created, or the path is not a directory
 */
export function makeDirectory(path: string, mode = 0o700): void {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    makeDirectory(dirname(path), mode);
    try {
      mkdirSync(path, { mode });
    } catch (error) {
      // Another process may have just created the directory.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
  if (!statSync(path).isDirectory()) throw new Error(`${path} is not a directory`);
}
