/** Whether others on this machine may look into a directory or a file, by its mode. */
import { statSync } from 'node:fs';

const OF_OTHERS = 0o077;

/** False also where nothing is. */
export function isOpenToOthers(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (found.mode & OF_OTHERS) !== 0;
}
