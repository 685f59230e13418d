/** Tools that tests use if they are installed. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The path of a program; undefined if it is not in `PATH`. */
export function inPath(name: string): string | undefined {
  const directories = (process.env.PATH ?? '').split(delimiter).filter((directory) => directory !== '');
  return directories.map((directory) => join(directory, name)).find(isProgram);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
