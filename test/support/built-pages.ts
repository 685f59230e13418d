/** The dashboard's pages, built of what stands in the repository now. */
import { join } from 'node:path';
import { BackgroundBuild } from '../../src/http/ui/background-build.ts';
import { createLogger, silentLogger } from '../../src/observe/log.ts';

const ROOT = join(import.meta.dirname, '../..');

let building: Promise<void> | undefined;

/** Builds them once, unless they are there. */
export function built(): Promise<void> {
  const log =
    process.env.TEST_LOG === undefined ? silentLogger : createLogger({ level: 'debug', pretty: true });
  const environment = new Map([['PATH', process.env.PATH ?? '']]);
  building ??= new BackgroundBuild({ root: ROOT, log, environment }).start();
  return building;
}
