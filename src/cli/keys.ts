/** `flowhook keys`: creates, lists and revokes API keys. */
import type { Command } from 'commander';
import { Problem } from '../model/error.ts';
import { DEFAULT_SCOPES, isTeamSlug, SCOPES, type Scope } from '../model/team.ts';
import { toIso } from '../std/clock.ts';
import { mintKey } from '../teams/keys.ts';
import { UsageError } from './exit.ts';
import { withStore } from './open.ts';
import { addSettings, configOf } from './settings.ts';

export function addKeys(program: Command): void {
  const keys = program.command('keys').description('create, list and revoke API keys');

  const create = keys
    .command('create')
    .description('create a key and print it, this once; a running server takes it at once')
    .requiredOption('--team <slug>', 'the team it speaks for; a new one is made')
    .option('--name <name>', 'what to call it', '')
    .option('--scopes <list>', `of ${SCOPES.join(', ')} (default: ${DEFAULT_SCOPES.join(',')})`)
    .option('--expires-in <days>', 'days until it expires (default: never)')
    .option('--json', 'print JSON');
  addSettings(create, ['data', 'database']);
  create.action(async (options: Record<string, unknown>) => {
    const slug = String(options.team);
    if (!isTeamSlug(slug)) {
      throw new UsageError(`--team must be 1 to 63 lower-case letters, digits or hyphens, found "${slug}"`);
    }
    const scopes = options.scopes === undefined ? DEFAULT_SCOPES : readScopes(String(options.scopes));
    const days = options.expiresIn === undefined ? undefined : Number(options.expiresIn);
    if (days !== undefined && !(days > 0 && days <= 36_500)) {
      throw new UsageError(`--expires-in must be a number of days up to 36500, found "${options.expiresIn}"`);
    }
    await withStore(configOf(options), async ({ store }) => {
      if ((await store.teams.bySlug({ slug })) === undefined) {
        process.stderr.write(`There was no team "${slug}": it is made now\n`);
      }
      const team = await store.teams.ensure({ slug });
      const expiresAt = days === undefined ? null : store.now() + days * 86_400_000;
      const { key, record } = await mintKey(store, {
        teamId: team.id,
        name: String(options.name),
        scopes,
        expiresAt,
      });
      if (options.json === true) {
        process.stdout.write(`${JSON.stringify({ id: record.id, team: slug, key })}\n`);
      } else {
        process.stderr.write(`Key ${record.id} of team ${slug}, shown this once:\n`);
        process.stdout.write(`${key}\n`);
      }
    });
  });

  const list = keys
    .command('list')
    .description('list keys, without the keys themselves')
    .option('--team <slug>', 'only those of one team')
    .option('--json', 'print JSON');
  addSettings(list, ['data', 'database']);
  list.action(async (options: Record<string, unknown>) => {
    await withStore(configOf(options), async ({ store }) => {
      const teams = new Map((await store.teams.list()).map((team) => [team.id, team.slug]));
      let teamId: string | undefined;
      if (options.team !== undefined) {
        teamId = [...teams].find(([, slug]) => slug === options.team)?.[0];
        if (teamId === undefined)
          throw new Problem('team_not_found', { sentence: `No team "${options.team}" found` });
      }
      const rows = (await store.keys.list(teamId === undefined ? {} : { teamId })).map((key) => ({
        id: key.id,
        team: teams.get(key.teamId) ?? key.teamId,
        name: key.name,
        prefix: key.prefix,
        scopes: key.scopes,
        createdAt: toIso(key.createdAt),
        expiresAt: key.expiresAt === null ? null : toIso(key.expiresAt),
        revokedAt: key.revokedAt === null ? null : toIso(key.revokedAt),
      }));
      if (options.json === true) {
        process.stdout.write(`${JSON.stringify(rows)}\n`);
        return;
      }
      for (const row of rows) {
        const state =
          row.revokedAt !== null
            ? `revoked ${row.revokedAt}`
            : row.expiresAt === null
              ? ''
              : `expires ${row.expiresAt}`;
        process.stdout.write(
          `${[row.id, row.team, `${row.prefix}…`, row.scopes.join(','), row.createdAt, row.name, state].join('  ').trimEnd()}\n`,
        );
      }
    });
  });

  const revoke = keys
    .command('revoke')
    .description('revoke a key for good; a running server refuses it within a second')
    .argument('<id>', 'as `flowhook keys list` shows it')
    .option('--json', 'print JSON');
  addSettings(revoke, ['data', 'database']);
  revoke.action(async (id: string, options: Record<string, unknown>) => {
    await withStore(configOf(options), async ({ store }) => {
      const key = await store.keys.revoke({ id });
      if (key === undefined) {
        throw new Problem('key_not_found', {
          sentence: `No key "${id}" found. \`flowhook keys list\` shows them`,
        });
      }
      if (options.json === true) process.stdout.write(`${JSON.stringify({ id: key.id, revoked: true })}\n`);
      else process.stdout.write(`revoked ${key.id}\n`);
    });
  });
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
