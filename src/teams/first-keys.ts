/** The keys created at start: the bootstrap key of the operator, and the first key of a new database. */
import { type ApiKey, SCOPES, type Team } from '../model/team.ts';
import type { Store } from '../store/store.ts';
import { mintKey, storeKey } from './keys.ts';

/** Stores the operator's bootstrap key with all scopes, unless it exists already or was revoked. */
export async function storeBootstrapKey(
  store: Store,
  { team, key }: { team: Team; key: string },
): Promise<void> {
  await storeKey(store, { teamId: team.id, scopes: SCOPES, expiresAt: null, name: 'bootstrap', key });
}

/** Creates the first key of the database, with all scopes; undefined when any key exists. */
export async function mintFirstKey(
  store: Store,
  { team, nodeId }: { team: Team; nodeId: string },
): Promise<{ key: string; record: ApiKey } | undefined> {
  if ((await store.keys.list({ limit: 1 })).length > 0) return undefined;
  // Of several nodes that start on a new database, one creates it; if that one dies, a later start does.
  if (!(await store.instance.lease({ name: 'first_key', nodeId, forMs: 60_000 }))) return undefined;
  if ((await store.keys.list({ limit: 1 })).length > 0) return undefined;
  return mintKey(store, { teamId: team.id, scopes: SCOPES, expiresAt: null, name: 'first' });
}
