/** `flowhook keys`: creates, lists and revokes API keys. */
import type { Command } from 'commander';
import type { Key } from 'flowhook-client';
import {
  DEFAULT_SCOPES,
  DEFAULT_TEAM,
  isTeamSlug,
  type KeyConcern,
  SCOPES,
  type Scope,
  type Team,
} from '../../model/team.ts';
import { nearest } from '../../std/nearest.ts';
import type { Store } from '../../store/store.ts';
import { mintKey } from '../../teams/keys.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import type { Options } from '../options.ts';
import { findTeams, onTarget, type Target, teamNotFound } from '../target.ts';
import { addYes, confirm, type Head, print, say, table } from '../terminal.ts';

const DAY_MS = 86_400_000;
const MAX_DAYS = 36_500;

export function addKeys(program: Command): void {
  const keys = program.command('keys').description('create, list and revoke API keys');

  const create = keys
    .command('create')
    .description('create a key and print it, only this once; a running server accepts it at once')
    .option(
      '--team <slug>',
      `the team of the key; if it does not exist, only "${DEFAULT_TEAM}" is created (a server uses the team of the calling key)`,
    )
    .option('--name <name>', 'what to call it', '')
    .option('--scopes <list>', `of ${SCOPES.join(', ')} (default: ${DEFAULT_SCOPES.join(',')})`)
    .option('--expires-in <days>', 'days until it expires (default: never)');
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
    .description('list keys, without their secret values')
    .option('--team <slug>', 'only keys of this team');
  onTarget(list, async (target, options: Options) => {
    const rows = await keysOf(target);
    print(options, rows, table(rows.map(cellsOf), process.stdout.columns, HEADS));
  });

  const revoke = keys
    .command('revoke')
    .description('revoke a key for good; a running server refuses it within a second')
    .argument('<id>', 'as `flowhook keys list` shows it');
  onTarget(addYes(revoke), revokeKey);
}

/** Whoever has the database may also make keys with the scope `operator`, which the API does not. */
async function createKey({ teams: [first], local }: Target, options: Options): Promise<void> {
  const wanted = { name: String(options.name), scopes: scopesFrom(options) };
  const expiresAt = expiryFrom(options);
  const made = async (): Promise<{ id: string; team: string; key: string }> => {
    if (local !== undefined) {
      const { id, slug } = await teamNamed(local, slugFrom(options));
      const { key, record } = await mintKey(local.store, { teamId: id, ...wanted, expiresAt });
      return { id: record.id, team: slug, key };
    }
    if (first === undefined) throw new Error('A server always has the team of the key');
    const asked = { ...wanted, ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt) }) };
    const { apiKey, key } = await first.client.keys.create(asked);
    return { id: key.id, team: await first.slug(), key: apiKey };
  };
  const key = await made();
  if (options.json !== true) say(`Key ${key.id} of team ${key.team}, shown this once:`);
  print(options, key, [key.key]);
}

/** @throws UsageError */
function slugFrom({ team }: Options): string {
  if (team === undefined) {
    throw new UsageError(
      '--team is missing: the team that the key speaks for, such as `--team default` (`flowhook teams list` shows them)',
    );
  }
  if (isTeamSlug(String(team))) return String(team);
  throw new UsageError(
    `--team must be 1 to 63 of a–z, 0–9 and -, beginning with a letter or digit, found "${team}"`,
  );
}

/** A misspelt slug must not become a team: only the one that every server has anyway is created here. */
async function teamNamed({ store }: { store: Store }, slug: string): Promise<Team> {
  const found = await store.teams.bySlug({ slug });
  if (found !== undefined) return found;
  if (slug === DEFAULT_TEAM) {
    say(`There was no team "${slug}": creating it`);
    return store.teams.ensure({ slug });
  }
  const teams = await findTeams(store, undefined);
  throw teamNotFound(slug, teams, ` (\`flowhook teams create ${slug}\` creates it)`);
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

/** Whoever has the database may also revoke keys with the scope `operator`. */
async function revokeKey(target: Target, id: string, options: Options): Promise<void> {
  const keys = await keysOf(target);
  const key = keys.find((one) => one.id === id);
  if (key === undefined) {
    const meant = nearest(
      id,
      keys.map((one) => one.id),
    );
    const advice = meant === undefined ? '`flowhook keys list` shows them' : `Did you mean ${meant}?`;
    throw new NotFoundError(`No key "${id}" found. ${advice}`);
  }
  if (key.revokedAt === null) {
    const name = key.name === '' ? '' : ` ("${key.name}")`;
    await confirm(options, {
      what:
        `The key ${key.id}${name} of the team "${key.team}", ${usedWords(key)}, will be revoked for good: ` +
        'every program that uses it is refused from then on',
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
    `--scopes: there is no scope ${unknown.map((scope) => `"${scope}"`).join(', ')}. There are: ${SCOPES.join(', ')}`,
  );
}

/** When a new key expires, in epoch milliseconds; null: never. @throws UsageError */
function expiryFrom({ expiresIn }: Options): number | null {
  if (expiresIn === undefined) return null;
  const days = Number(expiresIn);
  if (days > 0 && days <= MAX_DAYS) return Date.now() + days * DAY_MS;
  throw new UsageError(`--expires-in must be a number of days up to ${MAX_DAYS}, found "${expiresIn}"`);
}

const CONCERNS: Readonly<Record<KeyConcern, string>> = {
  unused: 'unused for 90 days: revoke it if nobody needs it',
  expires_soon: 'ends soon: make another one',
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
  const words = concern === null ? '' : `(${CONCERNS[concern]})`;
  return [id, team, `${prefix}…`, scopes.join(','), createdAt, name, usedWords(key), state, words];
}

function usedWords({ lastUsedAt }: Pick<Key, 'lastUsedAt'>): string {
  return lastUsedAt === null ? 'never used' : `last used ${lastUsedAt}`;
}
