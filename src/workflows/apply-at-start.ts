/** Applies the workflow files when a service starts, without waiting long for one that hangs. */
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../observe/log.ts';
import type { RunAs } from '../sources/process/environment.ts';
import type { Store } from '../store/store.ts';
import { type ApplyReport, applyWorkflows } from './apply.ts';
import type { ParseYaml } from './load.ts';

/** Files that can be read in this time are applied before the service listens. */
const PATIENCE_MS = 3_000;

/**
 * Whether no workflow has been applied yet. Then the first node applies its files at its start, as on SQLite. After
 * that only `flowhook apply` does, because nodes with different files would undo each other's definitions.
 */
export async function isWithoutWorkflows(store: Store): Promise<boolean> {
  return (await store.workflows.applied({ limit: 1 })).length === 0;
}

/**
 * Applies the workflow files. A file that hangs while it is read must not hold up the workflows that the database
 * already has.
 *
 * @param input.isNamed whether the directory was configured: it must then exist
 * @param input.signal stops the reading
 * @returns undefined when it takes longer than 3 s; it then goes on in the background
 */
export async function applyAtStart(
  store: Store,
  input: {
    directory: string;
    isNamed: boolean;
    runAs: RunAs | undefined;
    log: Logger;
    signal: AbortSignal;
    parseYaml?: ParseYaml;
  },
): Promise<ApplyReport | undefined> {
  const { isNamed, ...files } = input;
  const { directory, log, signal } = files;
  if (!isNamed && !existsSync(directory)) {
    log.warn(
      { directory },
      'workflows.none: put definitions into <team>/<id>.yaml here, or name their place with --workflows',
    );
    return { created: [], changed: [], unchanged: 0, restored: [], archived: [], missing: [], mistakes: [] };
  }
  const applying = applyWorkflows(store, { ...files, prune: false, force: false });
  const waited = new AbortController();
  let isLate = false;
  try {
    const report = await Promise.race([applying, pause(PATIENCE_MS, undefined, { signal: waited.signal })]);
    isLate = report === undefined;
    return report;
  } finally {
    waited.abort();
    applying.catch((err) => {
      // An error in time is thrown to the caller, who reports it.
      if (isLate && !signal.aborted) log.error({ err }, 'workflows.not_applied');
    });
  }
}
