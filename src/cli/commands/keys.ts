/** `flowhook keys`: creates, lists and revokes API keys. */
import type { Key } from '../../../client/src/flowhook-client.ts';
import {
  DEFAULT_SCOPES,
  DEFAULT_TEAM,
  isTeamSlug,
  type KeyConcern,
  SCOPES,
  type Scope,
  TEAM_SCOPES,
  type Team,
} from '../../model/team.ts';
import { nearest } from '../../std/nearest.ts';
import type { Store } from '../../store/store.ts';
import { mintKey } from '../../teams/keys.ts';
import type { Command } from '../command.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import type { Options } from '../options.ts';
import { findTeams, onTarget, type Target, teamNotFound } from '../target.ts';
import { addYes, confirm, type Head, print, say, table } from '../terminal.ts';
import { agoWords } from '../times.ts';

const DAY_MS = 86_400_000;
const MAX_DAYS = 36_500;

export function addKeys(program: Command): void {
  const keys = program.command('keys').description('create, list and revoke API keys');

  const create = keys
    .command('create')
    .description('create an API key and print it once; a running server accepts it immediately')
    .withExamples(
      'keys create --team default',
      'keys create --team acme --scopes read --expires-in 90 --name dashboard',
    )
    .option(
      '--team <slug>',
      `team of the key; "${DEFAULT_TEAM}" is created if it does not exist (on a server: the team of the calling key)`,
    )
    .option('--name <name>', 'name of the key', '')
    .option(
      '--scopes <list>',
      `scopes of the key: comma-separated, of ${SCOPES.join(', ')} (default: ${DEFAULT_SCOPES.join(',')})`,
    )
    .withValues('--scopes', TEAM_SCOPES)
    .option('--expires-in <days>', 'number of days until the key expires (default: never)');
  onTarget(create, createKey, {
    anyTeam: true,
    make: ({ team }) => team === DEFAULT_TEAM,
    check: (options) => {
      scopesFrom(options);
      expiryFrom(options);
    },
    checkLocal: (options) => void slugFrom(options),
  });

  const list = keys
    .command('list')
    .description('list API keys, without their secret values')
    .withExamples('keys list', 'keys list --team acme')
    .option('--team <slug>', 'only keys of this team');
  onTarget(list, async (target, options: Options) => {
    const rows = await keysOf(target);
    print(options, rows, table(rows.map(cellsOf), process.stdout.columns, HEADS));
  });

  const revoke = keys
    .command('revoke')
    .description('permanently revoke an API key; a running server rejects it within a second')
    .withExamples('keys revoke KEY')
    .argument('<id>', 'id of the key, as `flowhook keys list` shows it');
  onTarget(addYes(revoke), revokeKey);
}

/**
 * Creates a key. A key with the scope `operator` can be created only on a database, because the API does not grant that
 * scope.
 */
async function createKey({ teams: [first], local }: Target, options: Options): Promise<void> {
  const wanted = { name: String(options.name), scopes: scopesFrom(options) };
  const expiresAt = expiryFrom(options);
  const made = async (): Promise<{ id: string; team: string; key: string }> => {
    if (local !== undefined) {
      const { id, slug } = await teamNamed(local, slugFrom(options));
      const { key, record } = await mintKey(local.store, { teamId: id, ...wanted, expiresAt });
      return { id: record.id, team: slug, key };
    }
    if (first === undefined) throw new Error('On a server there is always the team of the key');
    const asked = { ...wanted, ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt) }) };
    const { apiKey, key } = await first.client.keys.create(asked);
    return { id: key.id, team: await first.slug(), key: apiKey };
  };
  const key = await made();
  if (options.json !== true)
    say(
      `Created ${key.id} in team ${key.team}. Save the key that this command prints: it is shown only once`,
    );
  print(options, key, [key.key]);
}

/** @throws UsageError */
function slugFrom({ team }: Options): string {
  if (team === undefined) {
    throw new UsageError(
      '--team is missing: name the team of the key, such as `--team default`. To list teams, run `flowhook teams list`',
    );
  }
  if (isTeamSlug(String(team))) return String(team);
  throw new UsageError(
    `--team must be 1 to 63 characters of a–z, 0–9 and -, beginning with a letter or digit, found "${team}"`,
  );
}

/**
 * Returns the team with this slug. Only the default team is created if it is missing, because every server creates it
 * anyway; a misspelled slug must not become a team.
 */
async function teamNamed({ store }: { store: Store }, slug: string): Promise<Team> {
  const found = await store.teams.bySlug({ slug });
  if (found !== undefined) return found;
  if (slug === DEFAULT_TEAM) {
    say(`Creating the team "${slug}"`);
    return store.teams.ensure({ slug });
  }
  const teams = await findTeams(store, undefined);
  throw teamNotFound(slug, teams, `To create the team, run \`flowhook teams create ${slug}\``);
}

type KeyRow = Key & { team: string };

async function keysOf({ teams }: Target): Promise<KeyRow[]> {
  const lists = teams.map(async ({ client, slug }) => {
    const team = await slug();
    const keys = await Array.fromAsync(client.keys.list({ limit: 1_000 }));
    return keys.map(({ id, ...key }) => ({ id, team, ...key }));
  });
  // Ids are ordered by time.
  return (await Promise.all(lists)).flat().sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Revokes a key. A key with the scope `operator` can be revoked only on a database. */
async function revokeKey(target: Target, id: string, options: Options): Promise<void> {
  const keys = await keysOf(target);
  const key = keys.find((one) => one.id === id);
  if (key === undefined) {
    const meant = nearest(
      id,
      keys.map((one) => one.id),
    );
    const advice = meant === undefined ? 'To list keys, run `flowhook keys list`' : `Did you mean ${meant}?`;
    throw new NotFoundError(`No key "${id}" found. ${advice}`);
  }
  if (key.revokedAt === null) {
    const name = key.name === '' ? '' : ` ("${key.name}")`;
    await confirm(options, {
      what:
        `The key ${key.id}${name} of the team "${key.team}", ${usedWords(key, Date.now())}, will be permanently ` +
        'revoked. Requests with it will fail',
      otherwise: 'nothing was revoked',
    });
  }
  const { local, teams } = target;
  await (local === undefined ? teams[0]?.client.keys.revoke(id) : local.store.keys.revoke({ id }));
  print(options, { id, revoked: true }, [`revoked ${id}`]);
}

/** @throws UsageError */
function scopesFrom({ scopes: list }: Options): readonly Scope[] {
  if (list === undefined) return DEFAULT_SCOPES;
  const scopes = String(list)
    .split(',')
    .map((scope) => scope.trim());
  const unknown = scopes.filter((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (unknown.length === 0) return scopes as Scope[];
  throw new UsageError(
    `--scopes must be a comma-separated list of ${SCOPES.join(', ')}, found ${unknown.map((scope) => `"${scope}"`).join(', ')}`,
  );
}

/** Returns the expiry of a new key in epoch milliseconds; null if the key never expires. @throws UsageError */
function expiryFrom({ expiresIn }: Options): number | null {
  if (expiresIn === undefined) return null;
  const days = Number(expiresIn);
  if (days > 0 && days <= MAX_DAYS) return Date.now() + days * DAY_MS;
  throw new UsageError(`--expires-in must be a number of days, up to ${MAX_DAYS}, found "${expiresIn}"`);
}

const CONCERNS: Readonly<Record<KeyConcern, string>> = {
  unused: 'unused for 90 days: revoke it if it is no longer needed',
  expires_soon: 'expires soon: create another key',
};

const HEADS: readonly Head[] = [
  { name: 'key' },
  { name: 'team', drop: 3 },
  { name: 'begins with', drop: 4 },
  { name: 'scopes', drop: 5 },
  { name: 'created', drop: 1 },
  { name: 'name' },
  { name: 'used', drop: 6 },
  { name: 'state' },
  { name: 'remark', drop: 2 },
];

function cellsOf(key: KeyRow): string[] {
  const { id, team, prefix, scopes, createdAt, name, expiresAt, revokedAt, concern } = key;
  const state =
    revokedAt !== null ? `revoked ${revokedAt}` : expiresAt === null ? '' : `expires ${expiresAt}`;
  const used = key.lastUsedAt === null ? 'never used' : `last used ${key.lastUsedAt}`;
  const words = concern === null ? '' : `(${CONCERNS[concern]})`;
  return [id, team, `${prefix}…`, scopes.join(','), createdAt, name, used, state, words];
}

function usedWords({ lastUsedAt }: Key, nowMs: number): string {
  return lastUsedAt === null ? 'never used' : `last used ${agoWords(lastUsedAt, nowMs)}`;
}
