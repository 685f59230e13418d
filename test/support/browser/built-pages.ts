/** Builds the dashboard's pages and the guide from the current sources. */
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

/** Builds the pages of the dashboard once, if they are missing or outdated. */
export function built(): Promise<void> {
  return builtOf(DASHBOARD);
}

/** Builds the guide once, if it is missing or outdated. */
export function builtGuide(): Promise<void> {
  return builtOf(GUIDE);
}

function builtOf(what: BuildTarget): Promise<void> {
  const log =
    process.env.TEST_LOG === undefined ? silentLogger : createLogger({ level: 'debug', pretty: true });
  const environment = new Map([['PATH', process.env.PATH ?? '']]);
  const build = building.get(what) ?? new BackgroundBuild({ root: ROOT, log, environment, what }).start();
  building.set(what, build);
  return build;
}
