/** Applies the directory of workflow files to the store: definitions are rows, files are where they come from. */
import { Problem } from '../model/error.ts';
import { nextRunAt } from '../model/schedule.ts';
import { type Definition, isOfApi } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import type { Store } from '../store/store.ts';
import type { Mistake } from './check.ts';
import { type FoundWorkflow, loadWorkflows } from './load.ts';

/** Writes that wait together share a commit. */
const APPLIED_AT_ONCE = 64;

/** What applying came to. Workflows are named `team/id`. */
export interface ApplyReport {
  created: string[];
  changed: string[];
  unchanged: number;
  /** Archived before, and back with their data because their file is back. */
  restored: string[];
  archived: string[];
  /** In the store, without a file, and still active. */
  missing: string[];
  /** Files that are wrong; the definitions that were applied before them stay active. */
  mistakes: Mistake[];
}

/**
 * Makes the store's workflows what the files say; a team that has a folder and no row is created. Workflows
 * whose file is gone are only reported, or archived with `prune`. Throws a `Problem` before anything is changed
 * when the directory is missing, and when pruning would archive more than half without `force`.
 */
export async function applyWorkflows(
  store: Store,
  options: { directory: string; prune: boolean; force: boolean; log: Logger; signal?: AbortSignal },
): Promise<ApplyReport> {
  const stored = await storedWorkflows(store);
  const { found, mistakes, broken } = await loadWorkflows({
    directory: options.directory,
    known: (team, id) => stored.get(`${team}/${id}`)?.hash,
    log: options.log,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const present = new Set([...found, ...broken].map(({ team, id }) => `${team}/${id ?? '*'}`));
  const gone = [...stored].filter(([name, { team }]) => !present.has(name) && !present.has(`${team}/*`));
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
  tell(report, options.log);
  return report;
}

export interface StoredWorkflow {
  team: string;
  teamId: string;
  id: string;
  hash: string;
  /** Whether its runs start from files of the workflows directory. */
  fromFiles: boolean;
}

/** Whether runs start from files of the workflows directory. */
export function needsFiles(sourceType: Definition['source']['type']): boolean {
  return sourceType === 'command' || sourceType === 'module';
}

/** Every workflow that is not archived and was not made over the API, by `team/id`. */
export async function storedWorkflows(store: Store): Promise<Map<string, StoredWorkflow>> {
  const [teams, workflows] = await Promise.all([store.teams.list(), store.workflows.applied()]);
  const slugs = new Map(teams.map(({ id, slug }) => [id, slug]));
  const all = new Map<string, StoredWorkflow>();
  for (const one of workflows) {
    if (isOfApi(one)) continue;
    const { teamId, id, definitionHash: hash, sourceType } = one;
    // A team that was made since it was asked for is found by the next look.
    const team = slugs.get(teamId);
    if (team !== undefined)
      all.set(`${team}/${id}`, { team, teamId, id, hash, fromFiles: needsFiles(sourceType) });
  }
  return all;
}

function refuse(gone: [string, StoredWorkflow][], total: number, options: { directory: string }): never {
  const names = gone.slice(0, 5).map(([name]) => name);
  const list =
    gone.length > names.length
      ? `${names.join(', ')} and ${gone.length - names.length} more`
      : names.join(', ');
  throw new Problem('definition_invalid', {
    sentence:
      `Pruning would archive ${gone.length} of ${total} workflows, more than half (${list}), so nothing was changed. ` +
      `If ${options.directory} is the right directory, say --force`,
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
      // Who says what it expects is told so; what the team has no room for is among the mistakes.
      else if (outcome !== 'stale') report[outcome].push(name);
    }
  }
}

/** When a schedule is due first, in epoch milliseconds; null without one. */
export function firstRunAt({ schedule }: Definition, now: number): number | null {
  return schedule === null ? null : nextRunAt(schedule, now);
}

async function archive(store: Store, gone: [string, StoredWorkflow][]): Promise<string[]> {
  for (const [teamId, ofTeam] of Map.groupBy(gone, ([, { teamId }]) => teamId)) {
    await store.workflows.archive({ teamId, ids: ofTeam.map(([, { id }]) => id) });
  }
  return gone.map(([name]) => name);
}

function tell(report: ApplyReport, log: Logger): void {
  const { created, changed, restored, archived, missing, mistakes } = report;
  for (const { file, line, message } of mistakes) {
    log.warn({ file, line, error: message }, 'workflow.broken: its last good definition stays active');
  }
  if (missing.length > 0) {
    log.warn(
      { workflows: missing },
      'workflow.missing: no file defines these; `flowhook apply --prune` archives them',
    );
  }
  const counts = { created, changed, restored, archived };
  if (Object.values(counts).some((names) => names.length > 0)) log.info(counts, 'workflows.applied');
}
