/**
 * What a command acts on: the teams of a database, or the team of a key on a server. Either way it is written once,
 * against the client: on a database the calls are answered in this process.
 */
import type { Command } from 'commander';
import { Flowhook, type FlowhookError, type Job, type Workflow } from 'flowhook-client';
import type { Config } from '../config/config.ts';
import { nearest } from '../std/nearest.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { localClient } from './local-server.ts';
import { addStoreOptions, withStore } from './open.ts';
import type { Options } from './options.ts';
import { serverOf } from './profiles.ts';

export interface Target {
  /** Those that `--team` leaves; of a server the one of the key. */
  teams: readonly TargetTeam[];
  /** Undefined for a server. */
  local?: Local;
  /** How often something that is waited for may be read. */
  lookMs: number;
}

export interface TargetTeam {
  client: Flowhook;
  /** Its name, which a server is asked for. */
  slug(): Promise<string>;
  /** Undefined for a server. */
  id?: string;
}

export interface Local {
  store: Store;
  config: Config;
  /** Whether this process owns the database: then no server is running on it. */
  owned: boolean;
}

/** How the database is opened. */
export interface Opening<Arguments extends unknown[]> {
  /** Whether to create a missing one. */
  make?: (options: Options) => boolean;
  /** Whether to become its owner if no server is, so that jobs can run in this process. */
  own?: (options: Options) => boolean;
  /** Whether `--team` is the business of the action: the target then has all teams. */
  anyTeam?: true;
  /** Runs before anything is opened: refuses wrong flags. */
  check?: (...args: [...Arguments, Options]) => void | Promise<void>;
  /** The same for what only matters on a database. */
  checkLocal?: (options: Options) => void;
}

/** How many names an error lists at most. */
const MAX_NAMED = 10;
/** How many jobs of each team are searched for a similar id. */
const RECENT_JOBS = 500;
const LOCAL_LOOK_MS = 100;
const REMOTE_LOOK_MS = 300;

/**
 * Adds the flags that name a database or a server, and the action of the command.
 *
 * @param action gets the target, and what commander passes
 */
export function onTarget<Arguments extends unknown[]>(
  command: Command,
  action: (target: Target, ...args: [...Arguments, Options]) => Promise<void>,
  opening: Opening<Arguments> = {},
): Command {
  return addStoreOptions(command)
    .option('--url <url>', 'ask this server instead of the database (default: the variable FLOWHOOK_URL)')
    .option('--key <key>', 'its API key (default: the variable FLOWHOOK_KEY)')
    .option('--profile <name>', 'ask a server saved by `flowhook login` (or FLOWHOOK_PROFILE)')
    .action(async (...given: unknown[]) => {
      // Commander passes the arguments, the options and the command itself.
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

/** The server that the flags name; undefined when the database is meant. */
function serverNamed(options: Options) {
  const isLocal = options.data !== undefined || options.database !== undefined;
  const isRemote = options.url !== undefined || options.profile !== undefined;
  if (isLocal && isRemote) {
    throw new UsageError(
      '--data and --database name a database, --url and --profile a server: leave one out',
    );
  }
  if (isLocal) return undefined;
  const profile = serverOf(options);
  if (profile !== undefined && options.team !== undefined) {
    throw new UsageError(
      `A key speaks for its team: leave --team out, or name the database with --data. The server is ${profile.url}`,
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

/** What went wrong in this process, which the client takes for a connection that broke off. */
function causeOf(error: unknown): unknown {
  const { status, cause } = error as FlowhookError;
  return status === 0 && cause !== undefined ? cause : error;
}

/** The team with this slug, or all teams when it is undefined. @throws NotFoundError */
export async function findTeams(store: Store, slug: unknown) {
  const teams = await Array.fromAsync(everyRow(store.teams.list, {}));
  if (slug === undefined) return teams;
  const found = teams.filter((team) => team.slug === slug);
  if (found.length > 0) return found;
  throw teamNotFound(String(slug), teams);
}

/** The error for a team that does not exist. `more` is added to its sentence. */
export function teamNotFound(slug: string, teams: readonly { slug: string }[], more = ''): NotFoundError {
  const slugs = teams.map((team) => team.slug);
  return new NotFoundError(`No team "${slug}" found.${advice(slug, slugs)}${more}`);
}

/** The only team. @param why it must be one @throws UsageError */
export async function soleTeam({ teams }: Target, why: string): Promise<TargetTeam> {
  const [only, ...others] = teams;
  if (only === undefined) {
    throw new UsageError('There is no team yet: `flowhook apply` makes those that files name');
  }
  if (others.length === 0) return only;
  const slugs = await Promise.all(teams.map((team) => team.slug()));
  throw new UsageError(`${why}: say which with --team (${slugs.join(', ')})`);
}

/**
 * Acts on the workflow that a command names: `people`, or with its team `acme/people`, as `apply` and lists print it.
 *
 * @throws NotFoundError with the id that was probably meant; UsageError when several teams have a workflow of this id,
 *   or when the key or `--team` is of another team than the name: a workflow of the same id there was not meant
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
      `Several teams have a workflow "${id}": say which with --team (${slugs.join(', ')})`,
    );
  }
  return actIn(
    only,
    'workflow_not_found',
    (team) => action(team, id),
    async () => {
      const lists = teams.map(({ client }) => Array.fromAsync(client.workflows.list({ limit: 1_000 })));
      const known = new Set((await Promise.all(lists)).flat().map((workflow: Workflow) => workflow.id));
      const where = target.local === undefined ? '' : ' (`flowhook apply` makes those that files define)';
      return `No workflow "${id}" found.${advice(id, [...known])}${where}`;
    },
  );
}

/** The teams that may have a workflow, and its id. */
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
  const other = target.local === undefined ? 'the key is one of the team' : '--team says';
  throw new UsageError(`"${name}" names a workflow of the team ${slug}, but ${other} ${slugs.join()}`);
}

/** Acts on the job that a command names, in whatever team. @throws NotFoundError with the id that was probably meant */
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
        return `"${id}" is a workflow, not a job. \`flowhook jobs list --workflow ${id}\` shows its jobs`;
      }
      const recent = teams.map(({ client }) => client.jobs.list({ limit: RECENT_JOBS }).take(RECENT_JOBS));
      const ids = (await Promise.all(recent)).flat().map((job: Job) => job.id);
      const meant = nearest(id, ids);
      return meant === undefined
        ? `No job "${id}" found. \`flowhook jobs list\` shows the newest; ended ones are deleted after a while`
        : `No job "${id}" found. Did you mean ${meant}?`;
    },
  );
}

/**
 * Acts on the webhook with this id, or on the only one with this URL.
 *
 * @throws NotFoundError with the id that was probably meant; UsageError when several have the URL
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
      meant === undefined ? '`flowhook webhooks list` shows what there is' : `Did you mean ${meant}?`;
    return `No webhook "${name}" found. ${next}`;
  };
  if (/^wh_./.test(name)) {
    const [team] = await candidates(teams, name, ({ client }) => client.webhooks.get(name));
    return actIn(team, 'webhook_not_found', (found) => action(found, name), missing);
  }
  const [only, ...others] = (await all()).filter(({ url }) => url === name);
  if (only !== undefined && others.length > 0) {
    const ids = [only, ...others].map(({ id }) => id).join(', ');
    throw new UsageError(`Several webhooks have this URL: name one by its id (${ids})`);
  }
  return actIn(only, 'webhook_not_found', ({ team, id }) => action(team, id), missing);
}

/** Acts on the delivery that a command names, in whatever team. @throws NotFoundError */
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
      `No delivery "${id}" found. \`flowhook webhooks deliveries WEBHOOK\` shows those of a webhook; old ones are ` +
      'deleted after a while',
  );
}

/** The teams that may have it: a single one is not asked, since acting there tells. */
async function candidates(
  teams: readonly TargetTeam[],
  id: string,
  look: (team: TargetTeam) => Promise<unknown>,
): Promise<readonly TargetTeam[]> {
  return teams.length === 1 && isSegment(id) ? teams : having(teams, id, look);
}

/** The teams that have it. */
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

/** Whether a URL can name it: nothing, `.` and `..` would lead to another path, also percent-encoded. */
function isSegment(id: string): boolean {
  return !/^\.{0,2}$/.test(id);
}

/**
 * Acts where it was found.
 *
 * @param code of the error that says that it is not there after all: with a single team nobody has looked before
 * @param missing the sentence for that; the error is thrown as it is where the key may not look for what was meant
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

function advice(written: string, names: readonly string[]): string {
  const meant = nearest(written, names);
  if (meant !== undefined) return ` Did you mean "${meant}"?`;
  const some = names.slice(0, MAX_NAMED).join(', ');
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return ` There are: ${some === '' ? 'none yet' : some}${more}`;
}
