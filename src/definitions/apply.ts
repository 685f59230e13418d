/** Applies the workflow files of a directory to the store, whose rows are the definitions in effect. */
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import { firstRunAt } from '../model/schedule.ts';
import { type Definition, isOfApi } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import type { RunAs } from '../sources/process/environment.ts';
import { listed } from '../std/amounts.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { isBroken } from './files.ts';
import { type FoundWorkflow, loadWorkflows, type ParseYaml } from './load.ts';
import type { Mistake } from './section.ts';

/** This many workflows are applied concurrently, because concurrent writes share a commit. */
const APPLIED_AT_ONCE = 64;

/** The result of applying. Workflows are named `team/id`. */
export interface ApplyReport {
  created: string[];
  changed: string[];
  unchanged: number;
  /** Archived workflows whose file is back. They are active again, with their data. */
  restored: string[];
  archived: string[];
  /** Workflows that are active in the store, but have no file. */
  missing: string[];
  /** Mistakes in files that cannot be applied. The definitions that were applied earlier stay active. */
  mistakes: Mistake[];
}

/**
 * Creates and changes workflows as defined by the files, and creates teams for new folders. Workflows without a file
 * are reported; with `prune` they are also archived.
 *
 * @throws Problem, before anything is changed, if the directory is missing, or if pruning would archive more than half
 *   of the workflows without `force`
 */
export async function applyWorkflows(
  store: Store,
  options: {
    directory: string;
    prune: boolean;
    force: boolean;
    /** Modules are imported as this system user. If it is undefined, they are imported as the service's own user. */
    runAs: RunAs | undefined;
    log: Logger;
    signal?: AbortSignal | undefined;
    parseYaml?: ParseYaml | undefined;
  },
): Promise<ApplyReport> {
  const stored = await storedWorkflows(store);
  const { found, mistakes, broken } = await loadWorkflows({
    ...options,
    known: (team, id) => stored.get(`${team}/${id}`)?.hash,
  });
  const present = new Set(found.map(({ team, id }) => `${team}/${id}`));
  const gone = [...stored].filter(([name, workflow]) => !present.has(name) && !isBroken(broken, workflow));
  if (options.prune && !options.force && gone.length * 2 > stored.size) refuse(gone, stored.size, options);

  const report: ApplyReport = {
    created: [],
    changed: [],
    unchanged: 0,
    restored: [],
    archived: [],
    missing: options.prune ? [] : gone.map(([name]) => name),
    mistakes,
  };
  await applyFound(store, found, report);
  if (options.prune) report.archived = await archive(store, gone);
  logReport(report, options.log);
  return report;
}

interface StoredWorkflow {
  team: string;
  teamId: string;
  id: string;
  hash: string;
  /** See `needsFiles`. */
  fromFiles: boolean;
}

/** Whether runs of this kind of source use files of the workflows directory. */
export function needsFiles(sourceType: Definition['source']['type']): boolean {
  return sourceType === 'command' || sourceType === 'module';
}

/** Returns all workflows that were applied from files and are not archived, by `team/id`. */
export async function storedWorkflows(store: Store): Promise<Map<string, StoredWorkflow>> {
  const slugs = new Map<string, string>();
  for await (const { id, slug } of everyRow(store.teams.list, {})) slugs.set(id, slug);
  const all = new Map<string, StoredWorkflow>();
  for await (const one of everyRow(store.workflows.applied, {}, (row) => row)) {
    if (isOfApi(one)) continue;
    const { teamId, id, definitionHash: hash, sourceType } = one;
    // The team may have been created after the teams were read. The next call of this function finds such a team.
    const team = slugs.get(teamId);
    if (team !== undefined)
      all.set(`${team}/${id}`, { team, teamId, id, hash, fromFiles: needsFiles(sourceType) });
  }
  return all;
}

function refuse(gone: [string, StoredWorkflow][], total: number, options: { directory: string }): never {
  throw new Problem('definition_invalid', {
    sentence:
      `Pruning would archive ${gone.length} of ${total} workflows, more than half (${listed(gone.map(([name]) => name))}), so nothing was changed. ` +
      `If ${options.directory} is the right directory, use --force`,
  });
}

async function applyFound(store: Store, found: readonly FoundWorkflow[], report: ApplyReport): Promise<void> {
  const teamIds = new Map<string, string>();
  for (const slug of new Set(found.map(({ team }) => team))) {
    teamIds.set(slug, (await store.teams.ensure({ slug })).id);
  }
  for (let from = 0; from < found.length; from += APPLIED_AT_ONCE) {
    const outcomes = found
      .slice(from, from + APPLIED_AT_ONCE)
      .map(async ({ team, id, file, definition, hash }) => {
        const teamId = teamIds.get(team) as string;
        const outcome =
          definition &&
          (await store.workflows
            .apply({ teamId, id, definition, hash, nextRunAt: firstRunAt(definition, store.now()) })
            .catch((error: unknown) => {
              if (!(error instanceof Problem) || error.code !== 'quota_reached') throw error;
              report.mistakes.push({ file, line: null, message: error.message });
              return 'stale' as const;
            }));
        return { name: `${team}/${id}`, outcome: outcome ?? 'unchanged' } as const;
      });
    for (const { name, outcome } of await Promise.all(outcomes)) {
      if (outcome === 'unchanged') report.unchanged++;
      // The outcome `stale` means that the workflow exceeds a quota, which is already reported as a mistake.
      else if (outcome !== 'stale') report[outcome].push(name);
    }
  }
}

async function archive(store: Store, gone: [string, StoredWorkflow][]): Promise<string[]> {
  for (const [teamId, ofTeam] of Map.groupBy(gone, ([, { teamId }]) => teamId)) {
    await store.workflows.archive({ teamId, ids: ofTeam.map(([, { id }]) => id) });
  }
  return gone.map(([name]) => name);
}

function logReport(report: ApplyReport, log: Logger): void {
  const { created, changed, restored, archived, missing, mistakes } = report;
  for (const { file, line, message } of mistakes) {
    log.warn({ file, line, error: message }, 'workflow.broken: its last good definition stays active');
  }
  if (missing.length > 0) {
    log.warn(
      { workflows: missing },
      'workflow.missing: no file defines these workflows; `flowhook apply --prune` archives them',
    );
  }
  const counts = { created, changed, restored, archived };
  if (Object.values(counts).some((names) => names.length > 0)) log.info(counts, 'workflows.applied');
}

/** If the files can be read within this time, they are applied before the service starts to listen. */
const PATIENCE_MS = 3_000;

/**
 * Whether no workflow has been applied yet. In this case, the first node applies its files at startup, as on SQLite.
 * Afterwards, only `flowhook apply` applies files, because nodes with different files would overwrite each other's
 * definitions.
 */
export async function isWithoutWorkflows(store: Store): Promise<boolean> {
  return (await store.workflows.applied({ limit: 1 })).length === 0;
}

/**
 * Applies the workflow files at startup. A file that hangs while being read must not delay the workflows that are
 * already in the database.
 *
 * @param input.isNamed whether the directory was set explicitly and must therefore exist
 * @param input.signal stops the reading of the files
 * @returns undefined after 3 s; applying then continues in the background
 */
export async function applyAtStart(
  store: Store,
  input: {
    directory: string;
    isNamed: boolean;
    runAs: RunAs | undefined;
    log: Logger;
    signal: AbortSignal;
    parseYaml?: ParseYaml | undefined;
  },
): Promise<ApplyReport | undefined> {
  const { isNamed, ...files } = input;
  const { directory, log, signal } = files;
  if (!isNamed && !existsSync(directory)) {
    log.warn(
      { directory },
      'workflows.none: put definitions into <team>/<id>.yaml in this directory, set another directory with --workflows, ' +
        'or create an example with `flowhook init`',
    );
    return { created: [], changed: [], unchanged: 0, restored: [], archived: [], missing: [], mistakes: [] };
  }
  const applying = applyWorkflows(store, { ...files, prune: false, force: false });
  const report = await Promise.race([applying, pause(PATIENCE_MS, undefined, { ref: false })]);
  if (report === undefined) {
    applying.catch((err) => {
      if (!signal.aborted) log.error({ err }, 'workflows.not_applied');
    });
  }
  return report;
}
