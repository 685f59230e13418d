/** The ed25519 signing key of each team, created when it is first needed. The public key is published for receivers. */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { Problem } from '../model/error.ts';
import { toIso } from '../std/clock.ts';
import { newId } from '../std/id.ts';
import type { Sealer } from '../std/seal.ts';
import type { SigningKey } from '../store/operations/teams.ts';
import type { Store } from '../store/store.ts';
import type { WebhookDeps } from './sealed.ts';

/** A published key. `key` is `whpk_` followed by the 32 raw bytes in base64. */
interface PublicSigningKey {
  id: string;
  type: 'ed25519';
  key: string;
  createdAt: string;
}

/** Maximum number of keys that `createTeamSigner` caches. Beyond it, the oldest key is dropped. */
const MAX_OPEN_KEYS = 10_000;

/**
 * The public keys for the `v1a` signatures of a team, oldest first. Creates a key if the team has none.
 *
 * @throws Problem `team_not_found`
 */
export async function publicSigningKeys(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  input: { teamId: string },
): Promise<PublicSigningKey[]> {
  if ((await deps.store.teams.get(input)) === undefined) throw new Problem('team_not_found');
  await ensureKey(deps.store, deps.sealer, input.teamId);
  const keys = await deps.store.teams.signingKeys(input);
  return keys.map((key) => ({
    id: key.id,
    type: 'ed25519',
    key: `whpk_${key.publicKey}`,
    createdAt: toIso(key.createdAt),
  }));
}

/** Returns a function that resolves with the private key of a team, and caches the opened keys. */
export function createTeamSigner(store: Store, sealer: Sealer): (teamId: string) => Promise<KeyObject> {
  const open = new Map<string, KeyObject>();
  return async (teamId) => {
    const known = open.get(teamId);
    if (known !== undefined) return known;
    const { privateKey } = await ensureKey(store, sealer, teamId);
    const key = createPrivateKey({
      key: sealer.open(privateKey, contextOf(teamId)),
      format: 'der',
      type: 'pkcs8',
    });
    const [oldest] = open.keys();
    if (oldest !== undefined && open.size >= MAX_OPEN_KEYS) open.delete(oldest);
    open.set(teamId, key);
    return key;
  };
}

async function ensureKey(store: Store, sealer: Sealer, teamId: string): Promise<SigningKey> {
  const newest = (await store.teams.signingKeys({ teamId })).at(-1);
  if (newest !== undefined) return newest;
  const pair = generateKeyPairSync('ed25519');
  return store.teams.ensureSigningKey({
    teamId,
    id: newId('sig', store.now()),
    publicKey: Buffer.from(pair.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64'),
    privateKey: sealer.seal(pair.privateKey.export({ format: 'der', type: 'pkcs8' }), contextOf(teamId)),
    createdAt: store.now(),
  });
}

function contextOf(teamId: string): string {
  return `signing-key/${teamId}`;
}
