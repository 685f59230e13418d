/** The names of events as `--events` lists them. */
import type { Options } from './settings.ts';

export function eventNames(options: Options): string[] {
  return String(options.events ?? '*')
    .split(',')
    .map((name) => name.trim());
}
