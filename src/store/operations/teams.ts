/** Teams and the keys that they sign with. */
import type { Team } from '../../model/team.ts';
import { newId } from '../../std/id.ts';
import type { Page } from '../page.ts';
import { Part, type Tx, type View } from '../sql.ts';
import { RETIRED } from '../team-tables.ts';

/** A team's ed25519 key. `privateKey` is sealed; `publicKey` is the 32 raw bytes in base64. */
export interface SigningKey {
  teamId: string;
  id: string;
  publicKey: string;
  privateKey: string;
  createdAt: number;
}

const TEAM = new Part('select id, slug, created_at as "createdAt" from team');

/** The team with this slug, created if it is missing. */
export async function ensure(tx: Tx, { slug }: { slug: string }): Promise<Team> {
  const made = await tx.db.run`
    insert into team (id, slug, created_at) values (${newId('team', tx.now)}, ${slug}, ${tx.now})
    on conflict (slug) do nothing`;
  if (made === 0) tx.repeated = true;
  return (await bySlug(tx, { slug })) as Team;
}

export async function get(view: View, { teamId }: { teamId: string }): Promise<Team | undefined> {
  const team = await view.db.get<Team>`${TEAM} where id = ${teamId}`;
  return team?.slug.startsWith(RETIRED) ? undefined : team;
}

export function bySlug(view: View, { slug }: { slug: string }): Promise<Team | undefined> {
  return view.db.get<Team>`${TEAM} where slug = ${slug}`;
}

/** A page of the teams, by id, which is the order in which they were made. */
export function list(view: View, { after = '', limit }: Page): Promise<Team[]> {
  return view.db.all<Team>(
    `${TEAM} where id > $1 and slug not like '${RETIRED}%' order by id limit $2`,
    after,
    limit,
  );
}

/**
 * Stores a signing key unless the team has one; returns the one it has.
 *
 * Locks the team, so that of several nodes one stores its key and the others find it.
 */
export async function ensureSigningKey(tx: Tx, key: SigningKey): Promise<SigningKey> {
  await tx.db.lock`select 1 from team where id = ${key.teamId} for update`;
  const stored = (await signingKeys(tx, { teamId: key.teamId })).at(-1);
  if (stored !== undefined) return stored;
  await tx.db.run`
    insert into signing_key (team_id, id, public_key, private_key, created_at)
    values (${key.teamId}, ${key.id}, ${key.publicKey}, ${key.privateKey}, ${key.createdAt})`;
  return key;
}

/** Every signing key of the team that receivers should accept, oldest first. */
export function signingKeys(view: View, { teamId }: { teamId: string }): Promise<SigningKey[]> {
  return view.db.all<SigningKey>`
    select team_id as "teamId", id, public_key as "publicKey", private_key as "privateKey",
           created_at as "createdAt"
    from signing_key where team_id = ${teamId} order by created_at, id`;
}
