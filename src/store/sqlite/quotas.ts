/** Quotas of teams: their limits, how much of them is used, and whether there is room for more. */
import {
  type Holdings,
  type MadeQuota,
  type OwnQuotas,
  type PublishedQuota,
  type Quota,
  quotaReached,
} from '../../model/quota.ts';
import { MAX_COUNTED } from '../workflow-row.ts';
import type { Tx, View } from './transaction.ts';
import type { WorkflowRow } from './workflows.ts';

export function setQuotas(tx: Tx, { teamId, quotas }: { teamId: string; quotas: OwnQuotas }): void {
  tx.db.run('delete from quota where team_id = ?', teamId);
  for (const [name, most] of Object.entries(quotas)) {
    tx.db.run('insert into quota (team_id, name, most) values (?, ?, ?)', teamId, name, most);
  }
  // Waiting jobs may fit into the new limits.
  tx.touched.jobs = true;
}

export function quotas(view: View, { teamId }: { teamId: string }): OwnQuotas {
  const rows = view.db.all<{ name: Quota; most: number | null }>(
    'select name, most from quota where team_id = ? order by name',
    teamId,
  );
  return Object.fromEntries(rows.map(({ name, most }) => [name, most]));
}

export function holdings(view: View, { teamId }: { teamId: string }): Holdings {
  return {
    workflows: count(view, WORKFLOWS, teamId),
    webhooks: count(view, WEBHOOKS, teamId),
    keys: countMade(view, 'keys', teamId),
    records: count(view, IN_CURRENT.records, teamId, ''),
    storedBytes: count(view, IN_CURRENT.storedBytes, teamId, ''),
    runningJobs: count(view, RUNNING, teamId),
  };
}

/** The team's limit for one quota, its own or the instance's; null: no limit. */
export function quotaOf(tx: Tx, teamId: string, name: Quota): number | null {
  const own = tx.db.get<{ most: number | null }>(
    'select most from quota where team_id = ? and name = ?',
    teamId,
    name,
  );
  return own === undefined ? tx.quotas[name] : own.most;
}

/** Throws a Problem if the team's quota is used up. */
export function requireRoom(
  tx: Tx,
  teamId: string,
  name: MadeQuota,
  { beyond, way }: { beyond: number; way?: string } = { beyond: 0 },
): void {
  const most = quotaOf(tx, teamId, name);
  if (most === null) return;
  const held = countMade(tx, name, teamId);
  if (held >= most + beyond) throw quotaReached(name, most, way);
}

/** What the team has in the current versions of its other workflows. Reads two rows per workflow. */
export function publishedBeside(tx: Tx, quota: PublishedQuota, teamId: string, workflowId: string): number {
  return count(tx, IN_CURRENT[quota], teamId, workflowId);
}

/**
 * Counts and stores the bytes of a current version that has no count yet, such as one of a copied database; null if it
 * has too many records to count without blocking other writes.
 */
export function countBytes(tx: Tx, workflow: WorkflowRow, records: number): number | null {
  if (records > MAX_COUNTED) return null;
  const counted = tx.db.get<{ bytes: number }>(
    `select coalesce(sum(octet_length(body)), 0) as bytes from record
     where workflow = ?1 and added_in <= ?2 and (removed_in is null or removed_in > ?2)`,
    workflow.number,
    workflow.current_version,
  );
  const bytes = counted?.bytes ?? 0;
  tx.db.run(
    'update version set bytes = ? where team_id = ? and workflow_id = ? and number = ?',
    bytes,
    workflow.team_id,
    workflow.id,
    workflow.current_version,
  );
  return bytes;
}

const WORKFLOWS = 'select count(*) as held from workflow where team_id = ? and archived_at is null';
// Names the index of webhooks that are not deleted, because the planner would scan all of the team's.
const WEBHOOKS =
  "select count(*) as held from webhook indexed by webhook_same where team_id = ? and state <> 'deleted'";
const KEYS = `
  select count(*) as held from api_key indexed by api_key_team
  where team_id = ? and revoked_at is null and (expires_at is null or expires_at > ?)`;
const inCurrent = (column: 'total' | 'bytes') => `
  select coalesce(sum(version.${column}), 0) as held
  from workflow cross join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
    and version.number = workflow.current_version
  where workflow.team_id = ? and workflow.archived_at is null and workflow.id <> ?`;
const IN_CURRENT = { records: inCurrent('total'), storedBytes: inCurrent('bytes') };
const RUNNING = `
  select count(*) as held from job indexed by job_running where team_id = ? and state = 'running'`;

function countMade(view: View, name: MadeQuota, teamId: string): number {
  if (name === 'keys') return count(view, KEYS, teamId, view.now);
  return count(view, name === 'workflows' ? WORKFLOWS : WEBHOOKS, teamId);
}

function count(view: View, sql: string, ...at: (string | number)[]): number {
  return view.db.get<{ held: number }>(sql, ...at)?.held ?? 0;
}
