/**
 * The target of a command: the teams of a database, or the team of an API key on a server. Each command is written only
 * once, against the HTTP client. For a database, this process itself handles the client's calls.
 */
import { Flowhook, type FlowhookError, type Job, type Workflow } from '../../client/src/flowhook-client.ts';
import type { Config } from '../config/config.ts';
import { nearest } from '../std/nearest.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import type { Command } from './command.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { localClient } from './local-server.ts';
import { addStoreOptions, withStore } from './open.ts';
import type { Options } from './options.ts';
import { serverOf } from './profiles.ts';

export interface Target {
  /** On a database, its teams, filtered by `--team`. On a server, the team of the API key. */
  teams: readonly TargetTeam[];
  /** Undefined for a server. */
  local?: Local;
  /** The interval for polling, in milliseconds. */
  lookMs: number;
}

export interface TargetTeam {
  client: Flowhook;
  /** Returns the slug of the team. For a server, the function sends a request. */
  slug(): Promise<string>;
  /** Undefined for a server. */
  id?: string;
}

export interface Local {
  store: Store;
  config: Config;
  /** Whether this process owns the database, because no server is running on it. */
  owned: boolean;
}

/** How to open the database. */
export interface Opening<Arguments extends unknown[]> {
  /** Whether to create a missing database. */
  make?: (options: Options) => boolean;
  /**
   * Whether this process becomes the owner of the database if no server owns it, so that jobs can run in this process.
   */
  own?: (options: Options) => boolean;
  /** Whether the action itself interprets `--team`. If so, the target has all teams. */
  anyTeam?: true;
  /** Rejects invalid flags before a database or server is opened. */
  check?: (...args: [...Arguments, Options]) => void | Promise<void>;
  /** Rejects invalid values of flags that matter only on a database. */
  checkLocal?: (options: Options) => void;
}

/** The maximum number of names that an error lists. */
const MAX_NAMED = 10;
/** The number of recent jobs per team in which the command searches for a similar id. */
const RECENT_JOBS = 500;
const LOCAL_LOOK_MS = 100;
const REMOTE_LOOK_MS = 300;

/**
 * Adds the action of the command, and the flags that name a database or a server.
 *
 * @param action receives the target, followed by the arguments and options from commander
 */
export function onTarget<Arguments extends unknown[]>(
  command: Command,
  action: (target: Target, ...args: [...Arguments, Options]) => Promise<void>,
  opening: Opening<Arguments> = {},
): Command {
  return addStoreOptions(command)
    .option('--url <url>', 'use this server instead of a database (default: FLOWHOOK_URL)')
    .option('--key <key>', 'API key for the server (default: FLOWHOOK_KEY)')
    .option('--profile <name>', 'use a server saved by `flowhook login` (default: FLOWHOOK_PROFILE)')
    .action(async (...given: unknown[]) => {
      // Commander passes the arguments, the options and the command itself, which is not needed.
      const args = given.slice(0, -1) as [...Arguments, Options];
      const options = args.at(-1) as Options;
      await opening.check?.(...args);
      const profile = serverNamed(options);
      if (profile === undefined) {
        opening.checkLocal?.(options);
        const use = { make: opening.make?.(options) === true, own: opening.own?.(options) === true };
        return withStore(options, use, async (store, config, owned) => {
          const teams = await teamsOf({ store, config }, opening.anyTeam ? undefined : options.team);
          const local = { store, config, owned };
          await action({ teams, local, lookMs: LOCAL_LOOK_MS }, ...args).catch((error) => {
            throw causeOf(error);
          });
        });
      }
      const client = new Flowhook(profile);
      let slug: Promise<string> | undefined;
      const team = { client, slug: () => (slug ??= client.me().then((me) => me.team.slug)) };
      return action({ teams: [team], lookMs: REMOTE_LOOK_MS }, ...args);
    });
}

/** Returns the server that the flags name; undefined if the target is a database. */
function serverNamed(options: Options) {
  const isLocal = options.data !== undefined || options.database !== undefined;
  const isRemote = options.url !== undefined || options.profile !== undefined;
  if (isLocal && isRemote) {
    throw new UsageError(
      '--data and --database name a database, but --url and --profile name a server. Use only one of them',
    );
  }
  if (isLocal) return undefined;
  const profile = serverOf(options);
  if (profile !== undefined && options.team !== undefined) {
    throw new UsageError(
      `--team works only on a database: on the server ${profile.url}, the API key determines the team. Omit --team, or name a database with --data`,
    );
  }
  return profile;
}

async function teamsOf(of: { store: Store; config: Config }, slug: unknown): Promise<TargetTeam[]> {
  return (await findTeams(of.store, slug)).map((team) => ({
    client: localClient({ ...of, teamId: team.id }),
    slug: async () => team.slug,
    id: team.id,
  }));
}

/**
 * Returns the original error of a call that this process handled. The client reports such an error as a failed
 * connection.
 */
function causeOf(error: unknown): unknown {
  const { status, cause } = error as FlowhookError;
  return status === 0 && cause !== undefined ? cause : error;
}

/** Returns the team with this slug, or all teams if `slug` is undefined. @throws NotFoundError */
export async function findTeams(store: Store, slug: unknown) {
  const teams = await Array.fromAsync(everyRow(store.teams.list, {}));
  if (slug === undefined) return teams;
  const found = teams.filter((team) => team.slug === slug);
  if (found.length > 0) return found;
  throw teamNotFound(String(slug), teams);
}

/** The error for a team that does not exist, with the next step. */
export function teamNotFound(slug: string, teams: readonly { slug: string }[], next?: string): NotFoundError {
  const slugs = teams.map((team) => team.slug);
  return new NotFoundError(`No team "${slug}" found. ${advice(slug, slugs, next)}`);
}

/** Returns the only team. @param why the first sentence of the error if there are several teams @throws UsageError */
export async function soleTeam({ teams }: Target, why: string): Promise<TargetTeam> {
  const [only, ...others] = teams;
  if (only === undefined) {
    throw new UsageError('There is no team yet. Create one with `flowhook teams create SLUG`');
  }
  if (others.length === 0) return only;
  const slugs = await Promise.all(teams.map((team) => team.slug()));
  throw new UsageError(`${why}. Choose one with --team: ${slugs.join(', ')}`);
}

/**
 * Runs the action on the workflow with this name. The name is `people`, or with its team `acme/people`, as `apply` and
 * lists print it.
 *
 * @throws NotFoundError with the most similar id; UsageError when several teams have a workflow with this id, or when
 *   the team in the name is not the team of the key or of `--team`
 */
export async function onWorkflow<T>(
  target: Target,
  name: string,
  action: (team: TargetTeam, workflowId: string) => Promise<T>,
): Promise<T> {
  const { teams, id } = await teamsNamed(target, name);
  const found = await candidates(teams, id, ({ client }) => client.workflows.get(id));
  const [only, ...others] = found;
  if (only !== undefined && others.length > 0) {
    const slugs = await Promise.all(found.map((team) => team.slug()));
    throw new UsageError(
      `Several teams have a workflow "${id}". Choose one with --team: ${slugs.join(', ')}`,
    );
  }
  return actIn(
    only,
    'workflow_not_found',
    (team) => action(team, id),
    async () => {
      const lists = teams.map(({ client }) => Array.fromAsync(client.workflows.list({ limit: 1_000 })));
      const known = new Set((await Promise.all(lists)).flat().map((workflow: Workflow) => workflow.id));
      const next = target.local && 'To apply workflow files, run `flowhook apply`';
      return `No workflow "${id}" found. ${advice(id, [...known], next)}`;
    },
  );
}

/** Returns the teams that may have the workflow, and the id of the workflow. */
async function teamsNamed(
  target: Target,
  name: string,
): Promise<{ teams: readonly TargetTeam[]; id: string }> {
  const [, slug, id = name] = /^([^/]+)\/(.+)$/.exec(name) ?? [];
  if (slug === undefined) return { teams: target.teams, id };
  const slugs = await Promise.all(target.teams.map((team) => team.slug()));
  const teams = target.teams.filter((_, at) => slugs[at] === slug);
  if (teams.length > 0) return { teams, id };
  if (target.local !== undefined) await findTeams(target.local.store, slug);
  const other = target.local === undefined ? 'the API key belongs to the team' : '--team is';
  throw new UsageError(`"${name}" is a workflow of the team ${slug}, but ${other} ${slugs.join()}`);
}

/** Runs the action on the job with this id, in any team. @throws NotFoundError with the most similar id */
export async function onJob<T>(
  { teams }: Target,
  id: string,
  action: (team: TargetTeam, jobId: string) => Promise<T>,
): Promise<T> {
  const [team] = await candidates(teams, id, ({ client }) => client.jobs.get(id));
  return actIn(
    team,
    'job_not_found',
    (found) => action(found, id),
    async () => {
      if (
        !id.startsWith('job_') &&
        (await having(teams, id, ({ client }) => client.workflows.get(id))).length > 0
      ) {
        return `"${id}" is a workflow, not a job. To list its jobs, run \`flowhook jobs list --workflow ${id}\``;
      }
      const recent = teams.map(({ client }) => client.jobs.list({ limit: RECENT_JOBS }).take(RECENT_JOBS));
      const ids = (await Promise.all(recent)).flat().map((job: Job) => job.id);
      const meant = nearest(id, ids);
      return meant === undefined
        ? `No job "${id}" found. \`flowhook jobs list\` shows the newest jobs; old jobs are deleted (see keepJobs and keepJobsDays)`
        : `No job "${id}" found. Did you mean ${meant}?`;
    },
  );
}

/**
 * Runs the action on the webhook with this id, or on the only webhook with this URL or mail address.
 *
 * @throws NotFoundError with the most similar id or URL; UsageError when several webhooks have the URL
 */
export async function onWebhook<T>(
  { teams }: Target,
  name: string,
  action: (team: TargetTeam, webhookId: string) => Promise<T>,
): Promise<T> {
  const all = async () => {
    const lists = teams.map(async (team) =>
      (await team.client.webhooks.list()).map((one) => ({ ...one, team })),
    );
    return (await Promise.all(lists)).flat();
  };
  const missing = async () => {
    const meant = nearest(
      name,
      (await all()).flatMap(({ id, url }) => [id, url]),
    );
    const next =
      meant === undefined ? '`flowhook webhooks list` shows all webhooks' : `Did you mean ${meant}?`;
    return `No webhook "${name}" found. ${next}`;
  };
  if (/^wh_./.test(name)) {
    const [team] = await candidates(teams, name, ({ client }) => client.webhooks.get(name));
    return actIn(team, 'webhook_not_found', (found) => action(found, name), missing);
  }
  const [only, ...others] = (await all()).filter(({ url }) => url === name || url === `mailto:${name}`);
  if (only !== undefined && others.length > 0) {
    const ids = [only, ...others].map(({ id }) => id).join(', ');
    throw new UsageError(`Several webhooks have this URL. Choose one by its id: ${ids}`);
  }
  return actIn(only, 'webhook_not_found', ({ team, id }) => action(team, id), missing);
}

/** Runs the action on the delivery with this id, in any team. @throws NotFoundError */
export async function onDelivery<T>(
  { teams }: Target,
  id: string,
  action: (team: TargetTeam) => Promise<T>,
): Promise<T> {
  const [team] = await candidates(teams, id, ({ client }) => client.deliveries.get(id));
  return actIn(
    team,
    'delivery_not_found',
    action,
    async () =>
      `No delivery "${id}" found. \`flowhook webhooks deliveries WEBHOOK\` shows the deliveries of a webhook; old ` +
      'deliveries are deleted (see keepEventsDays)',
  );
}

/**
 * Returns the teams that may have the object with this id. With a single team, no request is sent, because the action
 * itself fails if the team does not have the object.
 */
async function candidates(
  teams: readonly TargetTeam[],
  id: string,
  look: (team: TargetTeam) => Promise<unknown>,
): Promise<readonly TargetTeam[]> {
  return teams.length === 1 && isSegment(id) ? teams : having(teams, id, look);
}

/** Returns the teams for which `look` finds the object. */
async function having(
  teams: readonly TargetTeam[],
  id: string,
  look: (team: TargetTeam) => Promise<unknown>,
): Promise<TargetTeam[]> {
  if (!isSegment(id)) return [];
  const found: TargetTeam[] = [];
  for (const team of teams) {
    try {
      await look(team);
      found.push(team);
    } catch (error) {
      if ((error as FlowhookError).status !== 404) throw error;
    }
  }
  return found;
}

/**
 * Whether the id can be a segment of a URL's path. An empty id, `.` and `..` would change the path, even
 * percent-encoded.
 */
function isSegment(id: string): boolean {
  return !/^\.{0,2}$/.test(id);
}

/**
 * Runs the action, and replaces its "not found" error with an error that gives advice.
 *
 * @param found undefined if no team has the object
 * @param code the error code with which the action fails if the object is missing. With a single team, nothing was
 *   searched before the action
 * @param missing returns the message of the error. If the key lacks the scope for `missing`, the original message is
 *   used
 */
async function actIn<Found, T>(
  found: Found | undefined,
  code: string,
  action: (found: Found) => Promise<T>,
  missing: () => Promise<string>,
): Promise<T> {
  if (found === undefined) throw new NotFoundError(await missing());
  try {
    return await action(found);
  } catch (error) {
    if ((error as FlowhookError).code !== code) throw error;
    throw new NotFoundError(await missing().catch(() => (error as Error).message));
  }
}

function advice(written: string, names: readonly string[], next?: string): string {
  const meant = nearest(written, names);
  const last = next === undefined ? '' : ` ${next}`;
  if (meant !== undefined) return `Did you mean "${meant}"?${last}`;
  const some = names.slice(0, MAX_NAMED).join(', ');
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return `${some === '' ? 'None exist yet' : `Choose one of: ${some}${more}`}${last && '.'}${last}`;
}
