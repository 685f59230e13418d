/** Whether other users of this machine may read or change a directory or a file, by its mode. */
import { statSync } from 'node:fs';

const OF_OTHERS = 0o077;

/** False also where there is nothing. */
export function isOpenToOthers(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (found.mode & OF_OTHERS) !== 0;
}
