/** Reads the input of our own programs in child processes. */
import { readFileSync } from 'node:fs';

/** What the launcher writes before the input of one of our programs, as a line of JSON. */
export interface Surroundings {
  /** The working directory. */
  directory: string;
  /** Environment variables of this run. */
  environment: Record<string, string>;
}

/**
 * Waits for the input, and sets the working directory and the environment of the run. A process may have been started
 * before its run (see `prepared.ts`), so nothing of a run is known before.
 */
export function readInput<T>(): T {
  const text = readFileSync(0, 'utf8');
  // The launcher has ended, or needs this prepared process no longer.
  if (text === '') process.exit();
  const end = text.indexOf('\n');
  const { directory, environment } = JSON.parse(text.slice(0, end)) as Surroundings;
  Object.assign(process.env, environment);
  process.chdir(directory);
  return JSON.parse(text.slice(end + 1)) as T;
}
