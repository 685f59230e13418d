/** The dashboard's pages and the guide, built of what stands in the repository now. */
import { join } from 'node:path';
import {
  BackgroundBuild,
  type BuildTarget,
  DASHBOARD,
  GUIDE,
} from '../../../src/http/ui/background-build.ts';
import { createLogger, silentLogger } from '../../../src/observe/log.ts';

const ROOT = join(import.meta.dirname, '../../..');

const building = new Map<BuildTarget, Promise<void>>();

/** Builds the pages of the dashboard once, unless they are there. */
export function built(): Promise<void> {
  return builtOf(DASHBOARD);
}

/** The same for the guide. */
export function builtGuide(): Promise<void> {
  return builtOf(GUIDE);
}

function builtOf(what: BuildTarget): Promise<void> {
  const log =
    process.env.TEST_LOG === undefined ? silentLogger : createLogger({ level: 'debug', pretty: true });
  const environment = new Map([['PATH', process.env.PATH ?? '']]);
  const begun = building.get(what) ?? new BackgroundBuild({ root: ROOT, log, environment, what }).start();
  building.set(what, begun);
  return begun;
}
