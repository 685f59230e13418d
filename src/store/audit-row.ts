/** The row of a line of the audit log, and its mapping to the model; the same for both drivers. */
import {
  type ActorKind,
  type AuditLine,
  type Author,
  type Change,
  localAuthor,
  OF_INSTANCE,
  type Target,
} from '../model/audit.ts';

/** The columns from `actorKind` on are null in old lines, from when only erasures were audited. */
export interface AuditRow {
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

/** For `select`; `a` is the line, `k` the key, `t` the team. */
export const AUDIT_COLUMNS = `
  a.id, a.team_id as "teamId", t.slug as team, a.action, a.actor, a.workflow_id as "workflowId", a.subject,
  a.details, a.created_at as "createdAt", a.actor_kind as "actorKind", a.actor_name as "actorName",
  k.name as "keyName", a.target_kind as "targetKind", a.target_id as "targetId", a.address,
  a.request_id as "requestId", a.summary`;

/** In the order of `auditValues`. */
export const STORED_COLUMNS = [
  'team_id',
  'id',
  'action',
  'actor',
  'workflow_id',
  'subject',
  'details',
  'created_at',
  'actor_kind',
  'actor_name',
  'target_kind',
  'target_id',
  'address',
  'request_id',
  'summary',
] as const;

/** Also fills the columns that nodes of the previous version read. */
export function auditValues(
  { change, author = localAuthor('service') }: { change: Change; author?: Author },
  { id, now }: { id: string; now: number },
): (string | number | null)[] {
  const { teamId, action, target, summary, subject = '', details = {} } = change;
  return [
    teamId,
    id,
    action,
    author.id ?? (author.kind === 'command' ? 'cli' : author.kind),
    target?.kind === 'workflow' ? target.id : null,
    subject,
    JSON.stringify(details),
    now,
    author.kind,
    author.name,
    target?.kind ?? null,
    target?.id ?? null,
    author.address,
    author.requestId,
    summary,
  ];
}

export function toAuditLine(row: AuditRow): AuditLine {
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
