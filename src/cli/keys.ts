/** `flowhook keys`: creates, lists and revokes API keys. */
import type { Command } from 'commander';
import { type ApiKey, DEFAULT_SCOPES, isTeamSlug, SCOPES, type Scope } from '../model/team.ts';
import { toIso } from '../std/clock.ts';
import { mintKey } from '../teams/keys.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { addStoreOptions, print, withStore } from './open.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';

const DAY_MS = 86_400_000;
const MAX_DAYS = 36_500;

export function addKeys(program: Command): void {
  const keys = program.command('keys').description('create, list and revoke API keys');

  const create = keys
    .command('create')
    .description('create a key and print it, this once; a running server takes it at once')
    .requiredOption('--team <slug>', 'the team it speaks for; a new one is made')
    .option('--name <name>', 'what to call it', '')
    .option('--scopes <list>', `of ${SCOPES.join(', ')} (default: ${DEFAULT_SCOPES.join(',')})`)
    .option('--expires-in <days>', 'days until it expires (default: never)');
  addStoreOptions(create).action(createKey);

  const list = keys
    .command('list')
    .description('list keys, without the keys themselves')
    .option('--team <slug>', 'only those of one team');
  addStoreOptions(list).action(listKeys);

  const revoke = keys
    .command('revoke')
    .description('revoke a key for good; a running server refuses it within a second')
    .argument('<id>', 'as `flowhook keys list` shows it');
  addStoreOptions(revoke).action(revokeKey);
}

async function createKey(options: Options): Promise<void> {
  const slug = String(options.team);
  if (!isTeamSlug(slug)) {
    throw new UsageError(
      `--team must be 1 to 63 of a–z, 0–9 and -, beginning with a letter or digit, found "${slug}"`,
    );
  }
  const scopes = options.scopes === undefined ? DEFAULT_SCOPES : readScopes(String(options.scopes));
  const days = options.expiresIn === undefined ? undefined : Number(options.expiresIn);
  if (days !== undefined && !(days > 0 && days <= MAX_DAYS)) {
    throw new UsageError(
      `--expires-in must be a number of days up to ${MAX_DAYS}, found "${options.expiresIn}"`,
    );
  }
  await withStore(options, { make: true }, async (store) => {
    if ((await store.teams.bySlug({ slug })) === undefined) {
      say(`There was no team "${slug}": it is made now`);
    }
    const team = await store.teams.ensure({ slug });
    const expiresAt = days === undefined ? null : store.now() + days * DAY_MS;
    const { key, record } = await mintKey(store, {
      teamId: team.id,
      name: String(options.name),
      scopes,
      expiresAt,
    });
    if (options.json !== true) say(`Key ${record.id} of team ${slug}, shown this once:`);
    print(options, { id: record.id, team: slug, key }, [key]);
  });
}

async function listKeys(options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store) => {
    const teams = new Map((await store.teams.list()).map((team) => [team.id, team.slug]));
    let teamId: string | undefined;
    if (options.team !== undefined) {
      teamId = [...teams].find(([, slug]) => slug === options.team)?.[0];
      if (teamId === undefined) {
        throw new NotFoundError(
          `No team "${options.team}" found. There are: ${[...teams.values()].join(', ') || 'none yet'}`,
        );
      }
    }
    const rows = (await store.keys.list(teamId === undefined ? {} : { teamId })).map((key) =>
      shown(key, teams.get(key.teamId) ?? key.teamId),
    );
    print(options, rows, rows.map(lineOf));
  });
}

async function revokeKey(id: string, options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store) => {
    const key = await store.keys.revoke({ id });
    if (key === undefined) {
      throw new NotFoundError(`No key "${id}" found. \`flowhook keys list\` shows them`);
    }
    print(options, { id: key.id, revoked: true }, [`revoked ${key.id}`]);
  });
}

type ShownKey = ReturnType<typeof shown>;

function shown(key: ApiKey, team: string) {
  return {
    id: key.id,
    team,
    name: key.name,
    prefix: key.prefix,
    scopes: key.scopes,
    createdAt: toIso(key.createdAt),
    expiresAt: key.expiresAt === null ? null : toIso(key.expiresAt),
    revokedAt: key.revokedAt === null ? null : toIso(key.revokedAt),
  };
}

function lineOf({ id, team, prefix, scopes, createdAt, name, expiresAt, revokedAt }: ShownKey): string {
  const state =
    revokedAt !== null ? `revoked ${revokedAt}` : expiresAt === null ? '' : `expires ${expiresAt}`;
  return [id, team, `${prefix}…`, scopes.join(','), createdAt, name, state].join('  ').trimEnd();
}

function readScopes(list: string): Scope[] {
  const scopes = list.split(',').map((scope) => scope.trim());
  const unknown = scopes.filter((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (unknown.length > 0) {
    throw new UsageError(
      `--scopes: there is no scope ${unknown.map((scope) => `"${scope}"`).join(', ')}. There are: ${SCOPES.join(', ')}`,
    );
  }
  return scopes as Scope[];
}
