/** Finds the team, workflow or job that a command line names, in all teams unless one is given. */

import type { Job } from '../model/job.ts';
import type { Team } from '../model/team.ts';
import type { Place } from '../records/read.ts';
import { nearest } from '../std/nearest.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { NotFoundError, UsageError } from './exit.ts';

/** How many names an error lists at most. */
const MAX_NAMED = 10;
/** How many jobs of each team are searched for a similar id. */
const RECENT_JOBS = 500;

/** The team with this slug, or all teams when it is undefined. @throws NotFoundError */
export async function findTeams(store: Store, slug: unknown): Promise<Team[]> {
  const teams = await Array.fromAsync(everyRow(store.teams.list, {}));
  if (slug === undefined) return teams;
  const found = teams.filter((team) => team.slug === slug);
  if (found.length > 0) return found;
  throw teamNotFound(String(slug), teams);
}

/** The error for a team that does not exist. `more` is added to its sentence. */
export function teamNotFound(slug: string, teams: readonly Team[], more = ''): NotFoundError {
  const slugs = teams.map((team) => team.slug);
  return new NotFoundError(`No team "${slug}" found.${advice(slug, slugs)}${more}`);
}

/**
 * The workflow that a command names: `people`, or with its team `acme/people`, as `apply` and lists print it.
 *
 * @param team its slug, if it was given
 * @throws NotFoundError; UsageError when several teams have a workflow of this id
 */
export async function findWorkflow(store: Store, name: string, team: unknown): Promise<Place> {
  const [, before, id = name] = /^([^/]+)\/(.+)$/.exec(name) ?? [];
  const teams = await findTeams(store, team ?? before);
  const found: { slug: string; place: Place }[] = [];
  for (const { id: teamId, slug } of teams) {
    if ((await store.workflows.get({ teamId, id })) === undefined) continue;
    found.push({ slug, place: { teamId, workflowId: id } });
  }
  const [only, ...others] = found;
  if (only === undefined) {
    const known: string[] = [];
    for (const { id: teamId } of teams) {
      for await (const workflow of everyRow(store.workflows.list, { teamId })) known.push(workflow.id);
    }
    throw new NotFoundError(
      `No workflow "${id}" found.${advice(id, [...new Set(known)])} (\`flowhook apply\` makes those that files define)`,
    );
  }
  if (others.length > 0) {
    const slugs = found.map(({ slug }) => slug).join(', ');
    throw new UsageError(`Several teams have a workflow "${id}": say which with --team (${slugs})`);
  }
  return only.place;
}

/**
 * The job that a command names, in any team.
 *
 * @throws NotFoundError, with the id that was probably meant
 */
export async function findJob(store: Store, id: string): Promise<Job> {
  const teams = await Array.fromAsync(everyRow(store.teams.list, {}));
  for (const { id: teamId } of teams) {
    const job = await store.jobs.get({ teamId, id });
    if (job !== undefined) return job;
  }
  if (!id.startsWith('job_')) {
    for (const { id: teamId } of teams) {
      if ((await store.workflows.get({ teamId, id })) === undefined) continue;
      throw new NotFoundError(
        `"${id}" is a workflow, not a job. \`flowhook jobs list --workflow ${id}\` shows its jobs`,
      );
    }
  }
  const recent: string[] = [];
  for (const { id: teamId } of teams) {
    recent.push(...(await store.jobs.list({ teamId, limit: RECENT_JOBS })).map((job) => job.id));
  }
  const meant = nearest(id, recent);
  throw new NotFoundError(
    meant === undefined
      ? `No job "${id}" found. \`flowhook jobs list\` shows the newest; ended ones are deleted after a while`
      : `No job "${id}" found. Did you mean ${meant}?`,
  );
}

function advice(written: string, names: readonly string[]): string {
  const meant = nearest(written, names);
  if (meant !== undefined) return ` Did you mean "${meant}"?`;
  const some = names.slice(0, MAX_NAMED).join(', ');
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return ` There are: ${some === '' ? 'none yet' : some}${more}`;
}
