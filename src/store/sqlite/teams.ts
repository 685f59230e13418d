/** Teams and their signing keys. */
import type { Team } from '../../model/team.ts';
import { newId } from '../../std/id.ts';
import type { Page } from '../page.ts';
import type { SigningKey } from '../store.ts';
import { RETIRED } from '../team-tables.ts';
import type { Tx, View } from './transaction.ts';

interface TeamRow {
  id: string;
  slug: string;
  created_at: number;
}

export function ensure(tx: Tx, { slug }: { slug: string }): Team {
  const made = tx.db.run(
    'insert into team (id, slug, created_at) values (?, ?, ?) on conflict (slug) do nothing',
    newId('team', tx.now),
    slug,
    tx.now,
  );
  if (made === 0) tx.repeated = true;
  return bySlug(tx, { slug }) as Team;
}

export function get(view: View, { teamId }: { teamId: string }): Team | undefined {
  const row = view.db.get<TeamRow>('select id, slug, created_at from team where id = ?', teamId);
  return row === undefined || row.slug.startsWith(RETIRED) ? undefined : toTeam(row);
}

export function bySlug(view: View, { slug }: { slug: string }): Team | undefined {
  const row = view.db.get<TeamRow>('select id, slug, created_at from team where slug = ?', slug);
  return row && toTeam(row);
}

export function list(view: View, { after = '', limit }: Page): Team[] {
  return view.db
    .all<TeamRow>(
      `select id, slug, created_at from team where id > ? and slug not like '${RETIRED}%' order by id limit ?`,
      after,
      limit,
    )
    .map(toTeam);
}

function toTeam(row: TeamRow): Team {
  return { id: row.id, slug: row.slug, createdAt: row.created_at };
}

interface SigningKeyRow {
  team_id: string;
  id: string;
  public_key: string;
  private_key: string;
  created_at: number;
}

export function ensureSigningKey(tx: Tx, key: SigningKey): SigningKey {
  const stored = signingKeys(tx, { teamId: key.teamId }).at(-1);
  if (stored !== undefined) return stored;
  tx.db.run(
    'insert into signing_key (team_id, id, public_key, private_key, created_at) values (?, ?, ?, ?, ?)',
    key.teamId,
    key.id,
    key.publicKey,
    key.privateKey,
    key.createdAt,
  );
  return key;
}

export function signingKeys(view: View, { teamId }: { teamId: string }): SigningKey[] {
  return view.db
    .all<SigningKeyRow>('select * from signing_key where team_id = ? order by created_at, id', teamId)
    .map((row) => ({
      teamId: row.team_id,
      id: row.id,
      publicKey: row.public_key,
      privateKey: row.private_key,
      createdAt: row.created_at,
    }));
}
