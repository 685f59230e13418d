/**
 * The ed25519 signing key of each team. It is created when somebody first reads the public key, because a signature that
 * nobody can verify would cost more processor time than the rest of signing and sending.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { Problem } from '../model/error.ts';
import { toIso } from '../std/clock.ts';
import { newId } from '../std/id.ts';
import type { Sealer } from '../std/seal.ts';
import type { WebhookDeps } from './sealed.ts';

/** A published key. `key` is `whpk_` followed by the 32 raw bytes in base64. */
interface PublicSigningKey {
  id: string;
  type: 'ed25519';
  key: string;
  createdAt: string;
}

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
  await ensureKey(deps, input);
  const keys = await deps.store.teams.signingKeys(input);
  return keys.map((key) => ({
    id: key.id,
    type: 'ed25519',
    key: `whpk_${key.publicKey}`,
    createdAt: toIso(key.createdAt),
  }));
}

/** Decrypts the private key of a team. */
export function openSigningKey(sealer: Sealer, input: { teamId: string; sealed: string }): KeyObject {
  const key = sealer.open(input.sealed, contextOf(input.teamId));
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

async function ensureKey(
  { store, sealer }: Pick<WebhookDeps, 'store' | 'sealer'>,
  { teamId }: { teamId: string },
): Promise<void> {
  if ((await store.teams.signingKeys({ teamId })).length > 0) return;
  const pair = generateKeyPairSync('ed25519');
  await store.teams.ensureSigningKey({
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
