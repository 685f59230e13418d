/** `flowhook keys` against a server: for the team of the calling key. */
import type { Flowhook, Key } from 'flowhook-client';
import { confirmRevoking, expiryFrom, KEY_HEADS, keyCells, scopesFrom } from './key-words.ts';
import { print } from './output.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { table } from './table.ts';

export async function createKeyAt(server: Flowhook, options: Options): Promise<void> {
  const expiresAt = expiryFrom(options, Date.now());
  const { team } = await server.me();
  const { apiKey, key } = await server.keys.create({
    name: String(options.name),
    scopes: scopesFrom(options),
    ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt) }),
  });
  if (options.json !== true) say(`Key ${key.id} of team ${team.slug}, shown this once:`);
  print(options, { id: key.id, team: team.slug, key: apiKey }, [apiKey]);
}

export async function listKeysAt(server: Flowhook, options: Options): Promise<void> {
  const { team } = await server.me();
  const keys: Key[] = await Array.fromAsync(server.keys.list({ limit: 1_000 }));
  const rows = keys.map((key) => ({ ...key, team: team.slug }));
  print(options, rows, table(rows.map(keyCells), process.stdout.columns, KEY_HEADS));
}

export async function revokeKeyAt(server: Flowhook, id: string, options: Options): Promise<void> {
  if (options.yes !== true) {
    const { team } = await server.me();
    const keys: Key[] = await Array.fromAsync(server.keys.list({ limit: 1_000 }));
    const key = keys.find((one) => one.id === id);
    // Of one that is not there, the server says so.
    if (key !== undefined) await confirmRevoking(options, { ...key, team: team.slug });
  }
  await server.keys.revoke(id);
  print(options, { id, revoked: true }, [`revoked ${id}`]);
}
