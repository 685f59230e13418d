/** Workflow files: whether each is valid, and whether it has been applied. */
import { existsSync } from 'node:fs';
import { silentLogger } from '../observe/log.ts';
import { countWords } from '../std/amounts.ts';
import { storedWorkflows } from '../workflows/apply.ts';
import { isBroken } from '../workflows/files.ts';
import { loadWorkflows } from '../workflows/load.ts';
import { type Check, error, ofSettings, ok, warning } from './check.ts';
import { listed } from './listed.ts';

/** Long, because changed modules are imported to read their settings. */
const LIMIT_MS = 30_000;

export const workflowFiles: Check = ofSettings(
  'files',
  'workflow-files',
  async (settings, subject, signal) => {
    const { workflowsDirectory: directory, workflowsNamed } = settings;
    if (!existsSync(directory)) {
      if (!workflowsNamed) return ok(`There are no workflow files (${directory})`);
      return error({
        what: `The workflows directory ${directory} does not exist`,
        why: 'The service does not start if a configured directory is missing',
        fix: 'Create it, or set FLOWHOOK_WORKFLOWS to another one',
      });
    }
    const { store } = subject.database;
    const stored = store === undefined ? undefined : await storedWorkflows(store);
    const { found, mistakes, broken } = await loadWorkflows({
      directory,
      runAs: settings.runAs,
      known: (team, id) => stored?.get(`${team}/${id}`)?.hash,
      log: silentLogger,
      signal,
    });
    if (mistakes.length > 0) {
      const places = mistakes.map(
        ({ file, line, message }) => `${file}${line === null ? '' : `:${line}`}: ${message}`,
      );
      return error({
        what: `Invalid workflow files: ${listed(places)}`,
        why: 'Each workflow keeps its last valid definition, or does not exist',
        fix: 'Correct them, check with `flowhook workflows validate`, and run `flowhook apply`',
      });
    }
    if (stored === undefined) return ok(`${countWords(found.length, 'workflow file')}, all valid`);
    const present = new Set(found.map(({ team, id }) => `${team}/${id}`));
    const changed = found.filter(({ definition }) => definition !== null);
    const missing = [...stored].flatMap(([name, workflow]) =>
      present.has(name) || isBroken(broken, workflow) ? [] : [name],
    );
    if (changed.length === 0 && missing.length === 0) {
      return ok(`${countWords(found.length, 'workflow file')}, all applied`);
    }
    const words = [
      ...(changed.length === 0
        ? []
        : [`changed or new: ${listed(changed.map(({ team, id }) => `${team}/${id}`))}`]),
      ...(missing.length === 0 ? [] : [`applied, but without a file: ${listed(missing)}`]),
    ];
    return warning({
      what: `The workflow files differ from what was applied; ${words.join('; ')}`,
      why: 'Runs use the applied definitions',
      fix: '`flowhook apply` applies the files; `flowhook apply --prune` archives workflows without a file',
    });
  },
  LIMIT_MS,
);
