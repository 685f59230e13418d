/** The keys that a start sees to: the one that the operator gives, and the first one where there is none. */
import { type ApiKey, SCOPES, type Team } from '../model/team.ts';
import type { Store } from '../store/store.ts';
import { mintKey, storeKey } from './keys.ts';

/** Gives a team the operator's own key with all scopes, unless it is there or was revoked. */
export async function storeBootstrapKey(
  store: Store,
  { team, key }: { team: Team; key: string },
): Promise<void> {
  await storeKey(store, { teamId: team.id, scopes: SCOPES, expiresAt: null, name: 'bootstrap', key });
}

/** Mints a team's first key with all scopes, where there is no key at all; answers nothing where there is one. */
export async function mintFirstKey(
  store: Store,
  { team, nodeId }: { team: Team; nodeId: string },
): Promise<{ key: string; record: ApiKey } | undefined> {
  if ((await store.keys.list({})).length > 0) return undefined;
  // Of several nodes that start on a new database one makes it; when that one dies over it, a later start does.
  if (!(await store.instance.lease({ name: 'first_key', nodeId, forMs: 60_000 }))) return undefined;
  if ((await store.keys.list({})).length > 0) return undefined;
  return mintKey(store, { teamId: team.id, scopes: SCOPES, expiresAt: null, name: 'first' });
}
