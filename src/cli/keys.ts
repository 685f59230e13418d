/** `flowhook keys`: creates, lists and revokes API keys. */

import type { Command } from 'commander';
import {
  type ApiKey,
  DEFAULT_SCOPES,
  DEFAULT_TEAM,
  isTeamSlug,
  keyConcern,
  SCOPES,
  type Team,
} from '../model/team.ts';
import { toIso } from '../std/clock.ts';
import { nearest } from '../std/nearest.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { mintKey } from '../teams/keys.ts';
import { addYes } from './confirm.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { findTeams, teamNotFound } from './find.ts';
import { confirmRevoking, expiryFrom, KEY_HEADS, keyCells, scopesFrom } from './key-words.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote } from './remote.ts';
import { createKeyAt, listKeysAt, revokeKeyAt } from './remote-keys.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { table } from './table.ts';

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
  orRemote(addStoreOptions(create), createKey, createKeyAt);

  const list = keys
    .command('list')
    .description('list keys, without their secret values')
    .option('--team <slug>', 'only keys of this team');
  orRemote(addStoreOptions(list), listKeys, listKeysAt);

  const revoke = keys
    .command('revoke')
    .description('revoke a key for good; a running server refuses it within a second')
    .argument('<id>', 'as `flowhook keys list` shows it');
  orRemote(addStoreOptions(addYes(revoke)), revokeKey, revokeKeyAt);
}

async function createKey(options: Options): Promise<void> {
  if (options.team === undefined) {
    throw new UsageError(
      '--team is missing: the team that the key speaks for, such as `--team default` (`flowhook teams list` shows them)',
    );
  }
  const slug = String(options.team);
  if (!isTeamSlug(slug)) {
    throw new UsageError(
      `--team must be 1 to 63 of a–z, 0–9 and -, beginning with a letter or digit, found "${slug}"`,
    );
  }
  const scopes = scopesFrom(options);
  await withStore(options, { make: slug === DEFAULT_TEAM }, async (store) => {
    const expiresAt = expiryFrom(options, store.now());
    const team = await teamOf(store, slug);
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

/** A misspelt slug must not become a team: only the one that every server has anyway is created here. */
async function teamOf(store: Store, slug: string): Promise<Team> {
  const found = await store.teams.bySlug({ slug });
  if (found !== undefined) return found;
  if (slug === DEFAULT_TEAM) {
    say(`There was no team "${slug}": creating it`);
    return store.teams.ensure({ slug });
  }
  const teams = await Array.fromAsync(everyRow(store.teams.list, {}));
  throw teamNotFound(slug, teams, ` (\`flowhook teams create ${slug}\` creates it)`);
}

async function listKeys(options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store) => {
    const teams = new Map((await findTeams(store, options.team)).map((team) => [team.id, team.slug]));
    const teamId = options.team === undefined ? undefined : [...teams.keys()][0];
    const of = teamId === undefined ? {} : { teamId };
    const rows = await Array.fromAsync(everyRow(store.keys.list, of), (key) =>
      shown(key, teams.get(key.teamId) ?? key.teamId, store.now()),
    );
    print(options, rows, table(rows.map(keyCells), process.stdout.columns, KEY_HEADS, store.now()));
  });
}

async function revokeKey(id: string, options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store) => {
    const keys = await Array.fromAsync(everyRow(store.keys.list, {}));
    const found = keys.find((key) => key.id === id);
    if (found === undefined) {
      const meant = nearest(
        id,
        keys.map((key) => key.id),
      );
      const advice = meant === undefined ? '`flowhook keys list` shows them' : `Did you mean ${meant}?`;
      throw new NotFoundError(`No key "${id}" found. ${advice}`);
    }
    const team = await store.teams.get({ teamId: found.teamId });
    await confirmRevoking(options, shown(found, team?.slug ?? found.teamId, store.now()));
    await store.keys.revoke({ id });
    print(options, { id, revoked: true }, [`revoked ${id}`]);
  });
}

function shown(key: ApiKey, team: string, now: number) {
  return {
    id: key.id,
    team,
    name: key.name,
    prefix: key.prefix,
    scopes: key.scopes,
    createdAt: toIso(key.createdAt),
    expiresAt: key.expiresAt === null ? null : toIso(key.expiresAt),
    revokedAt: key.revokedAt === null ? null : toIso(key.revokedAt),
    lastUsedAt: key.lastUsedAt === null ? null : toIso(key.lastUsedAt),
    concern: keyConcern(key, now),
  };
}
