/** The audit log: who changed what, written in the transaction of the change (`audited.ts` lists the operations). */

import {
  type ActorKind,
  type AuditLine,
  type Author,
  type Change,
  localAuthor,
  OF_INSTANCE,
  type Target,
} from '../../model/audit.ts';
import { newId } from '../../std/id.ts';
import { idsBetween } from '../page.ts';
import { deletion } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { makeDue, VISIT_MS } from './agenda.ts';

/** Selects audit lines; times in epoch milliseconds, both inclusive. */
export interface AuditFilter {
  /** Default: all teams and the instance. */
  teamId?: string;
  action?: string;
  /** The id of a key. */
  actorId?: string;
  /** The id of the changed thing. */
  targetId?: string;
  since?: number;
  until?: number;
}

/** The columns after `createdAt` are null in lines written when only erasures were audited. */
interface AuditRow {
  id: string;
  teamId: string;
  team: string | null;
  action: string;
  /** The id of a key, or `cli`. */
  actor: string;
  workflowId: string | null;
  subject: string;
  details: string;
  createdAt: number;
  actorKind: ActorKind | null;
  actorName: string | null;
  keyName: string | null;
  targetKind: Target['kind'] | null;
  targetId: string | null;
  address: string | null;
  requestId: string | null;
  summary: string | null;
}

/** Columns for `toAuditLine`. The aliases are `a` for the audit line, `k` for the key and `t` for the team. */
const AUDIT_COLUMNS = `
  a.id, a.team_id as "teamId", t.slug as team, a.action, a.actor, a.workflow_id as "workflowId", a.subject,
  a.details, a.created_at as "createdAt", a.actor_kind as "actorKind", a.actor_name as "actorName",
  k.name as "keyName", a.target_kind as "targetKind", a.target_id as "targetId", a.address,
  a.request_id as "requestId", a.summary`;

/** Maximum number of lines that one search for an action, actor or target reads. */
const MAX_SCANNED = 5_000;

/**
 * Writes an audit line for a change that does not correspond to exactly one operation. The default author is the one
 * that `authoredBy` has set for the store, otherwise the service.
 */
export async function add(
  tx: View & Pick<Tx, 'dues'>,
  { change, author = localAuthor('service') }: { change: Change; author?: Author },
): Promise<void> {
  const { teamId, action, target, summary, subject = '', details = {} } = change;
  const { kind, id, name, address, requestId } = author;
  // Nodes of the previous version read the columns `actor` and `workflow_id`.
  const actor = id ?? (kind === 'command' ? 'cli' : kind);
  const workflowId = target?.kind === 'workflow' ? target.id : null;
  const inserted = tx.db.run`
    insert into audit (team_id, id, action, actor, workflow_id, subject, details, created_at, actor_kind, actor_name,
      target_kind, target_id, address, request_id, summary)
    values (${teamId}, ${newId('aud', tx.now)}, ${action}, ${actor}, ${workflowId}, ${subject},
      ${JSON.stringify(details)}, ${tx.now}, ${kind}, ${name}, ${target?.kind ?? null}, ${target?.id ?? null},
      ${address}, ${requestId}, ${summary})`;
  if (teamId !== OF_INSTANCE) makeDue(tx, teamId, 'prune', tx.now + VISIT_MS);
  await tx.db.last(inserted);
}

/**
 * Returns a page of audit lines, newest first. To get the following page, pass `next` as `before`; `next` is null after
 * the last page. Filtering by action, actor or target scans a limited number of lines per call, so any page may be
 * short or even empty.
 */
export async function list(
  { db }: View,
  input: AuditFilter & { before?: string; limit: number },
): Promise<{ lines: AuditLine[]; next: string | null }> {
  const { teamId, action, actorId, targetId, limit } = input;
  const { first, end, since, until } = idsBetween('aud', input);
  // There are two statements instead of one with an optional condition, so that each can use its own index.
  const [ofTeam, team] = teamId === undefined ? ['', []] : ['a.team_id = $4 and', [teamId]];
  const isSearch = action !== undefined || actorId !== undefined || targetId !== undefined;
  const last = isSearch
    ? (
        await db.get<{ id: string }>(
          `select a.id from audit a where ${ofTeam} a.id < $1 and a.id >= $2 order by a.id desc limit 1 offset $3`,
          end,
          first,
          MAX_SCANNED - 1,
          ...team,
        )
      )?.id
    : undefined;
  const rows = await db.all<AuditRow>(
    `select ${AUDIT_COLUMNS} from audit a
     left join api_key k on k.id = a.actor left join team t on t.id = a.team_id
     where ${ofTeam.replace('$4', '$9')} a.id < $1 and a.id >= $2 and a.created_at between $3 and $4
       and ($5::text is null or a.action = $5) and ($6::text is null or a.actor = $6)
       and ($7::text is null or a.target_id = $7)
     order by a.id desc limit $8`,
    end,
    last ?? first,
    since,
    until,
    action ?? null,
    actorId ?? null,
    targetId ?? null,
    limit + 1,
    ...team,
  );
  const lines = rows.slice(0, limit).map(toAuditLine);
  return { lines, next: rows.length > limit ? (lines.at(-1)?.id ?? null) : (last ?? null) };
}

const OLD = deletion({
  table: 'audit',
  key: 'team_id, id',
  first: 'where team_id = $1 and id < $2 and created_at <= $3 order by id limit $4',
});

/**
 * Deletes lines of a team, or of the instance, that are older than `olderMs`. At most `limit` per call; call until
 * `done`. `at` is when the oldest line that is left may be deleted.
 */
export async function prune(
  tx: Tx,
  { teamId, olderMs, limit }: { teamId: string; olderMs: number; limit: number },
): Promise<{ done: boolean; at: number | null }> {
  const { end, until } = idsBetween('aud', { until: tx.now - olderMs });
  if ((await tx.db.run(OLD, teamId, end, until, limit)) >= limit) return { done: false, at: null };
  const first = await tx.db.get<{ at: number }>`
    select created_at as at from audit where team_id = ${teamId} order by id limit 1`;
  return { done: true, at: first === undefined ? null : first.at + olderMs };
}

function toAuditLine(row: AuditRow): AuditLine {
  return {
    id: row.id,
    teamId: row.teamId,
    team: row.teamId === OF_INSTANCE ? null : row.team,
    action: row.action,
    author: authorOf(row),
    target: targetOf(row),
    summary: row.summary ?? '',
    subject: row.subject === '' ? null : row.subject,
    details: JSON.parse(row.details),
    createdAt: row.createdAt,
  };
}

function authorOf({ actor, actorKind, actorName, keyName, address, requestId }: AuditRow): Author {
  const kind = actorKind ?? (actor === 'cli' ? 'command' : 'key');
  const isKey = kind === 'key' || kind === 'session';
  return {
    kind,
    id: isKey && actor !== kind ? actor : null,
    name: isKey ? keyName : actorName,
    address,
    requestId,
  };
}

function targetOf({ targetKind, targetId, workflowId }: AuditRow): Target | null {
  if (targetKind !== null && targetId !== null) return { kind: targetKind, id: targetId };
  return workflowId === null ? null : { kind: 'workflow', id: workflowId };
}
