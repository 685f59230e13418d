/** Workflow files: whether each is valid, and whether it has been applied. */
import { existsSync } from 'node:fs';
import { silentLogger } from '../observe/log.ts';
import { countWords } from '../std/amounts.ts';
import { storedWorkflows } from '../workflows/apply.ts';
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
        why: 'The service does not start without a directory that a setting names',
        fix: 'Make it, or name another one with FLOWHOOK_WORKFLOWS',
      });
    }
    const { store } = subject.database;
    const stored = store === undefined ? undefined : await storedWorkflows(store);
    const { found, mistakes, broken } = await loadWorkflows({
      directory,
      known: (team, id) => stored?.get(`${team}/${id}`)?.hash,
      log: silentLogger,
      signal,
    });
    if (mistakes.length > 0) {
      const places = mistakes.map(
        ({ file, line, message }) => `${file}${line === null ? '' : `:${line}`}: ${message}`,
      );
      return error({
        what: `These workflow files cannot be used: ${listed(places)}`,
        why: 'Each of them keeps the last definition that could be read, or does not exist',
        fix: 'Correct them; `flowhook workflows validate` says when all is well, and `flowhook apply` brings them in',
      });
    }
    if (stored === undefined) return ok(`${found.length} workflow files can be read`);
    const present = new Set([...found, ...broken].map(({ team, id }) => `${team}/${id}`));
    const changed = found.filter(({ definition }) => definition !== null);
    const missing = [...stored.keys()].filter((name) => !present.has(name));
    if (changed.length === 0 && missing.length === 0) {
      return ok(`${countWords(found.length, 'workflow file')}, as applied`);
    }
    const words = [
      ...(changed.length === 0
        ? []
        : [`changed or new since: ${listed(changed.map(({ team, id }) => `${team}/${id}`))}`]),
      ...(missing.length === 0 ? [] : [`applied, and without a file: ${listed(missing)}`]),
    ];
    return warning({
      what: `The workflow files are not what was applied; ${words.join('; ')}`,
      why: 'Runs go by what was applied',
      fix: '`flowhook apply` brings files in; `flowhook apply --prune` archives workflows whose file is gone',
    });
  },
  LIMIT_MS,
);
