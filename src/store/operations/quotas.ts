/** Quotas of teams: their settings, how much of each quota is used, and whether a team may create more. */

import {
  type Holdings,
  type MadeQuota,
  type OwnQuotas,
  type PublishedQuota,
  type Quota,
  quotaReached,
} from '../../model/quota.ts';
import { insertAll } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { touchJobs } from './agenda.ts';

/** Replaces all quotas set for a team. Quotas that are not set for the team default to those of the instance. */
export async function setQuotas(
  tx: Tx,
  { teamId, quotas }: { teamId: string; quotas: OwnQuotas },
): Promise<void> {
  await lockTeam(tx, teamId);
  await tx.db.run`delete from quota where team_id = ${teamId}`;
  const rows = Object.entries(quotas).map(([name, most]) => [teamId, name, most]);
  await insertAll(tx.db, 'quota', { team_id: 'text', name: 'text', most: 'bigint' }, rows);
  // Jobs that waited because of the quota may start now.
  touchJobs(tx, teamId, tx.now);
}

/** The team's own quotas. */
export async function quotas(view: View, { teamId }: { teamId: string }): Promise<OwnQuotas> {
  const rows = await view.db.all<{ name: Quota; most: number | null }>`
    select name, most from quota where team_id = ${teamId} order by name`;
  return Object.fromEntries(rows.map(({ name, most }) => [name, most]));
}

/** Returns how much of each quota the team uses. This reads all counted rows, so only the command line uses it. */
export async function holdings(view: View, { teamId }: { teamId: string }): Promise<Holdings> {
  return {
    workflows: await count(view, WORKFLOWS, teamId),
    webhooks: await count(view, WEBHOOKS, teamId),
    keys: await countMade(view, 'keys', teamId),
    records: await count(view, IN_CURRENT.records, teamId, ''),
    storedBytes: await count(view, IN_CURRENT.storedBytes, teamId, ''),
    runningJobs: await count(view, RUNNING, teamId),
  };
}

/** The team's quota; null means no limit. */
export async function quotaOf(tx: Tx, teamId: string, name: Quota): Promise<number | null> {
  const own = await tx.db.get<{ most: number | null }>`
    select most from quota where team_id = ${teamId} and name = ${name}`;
  return own === undefined ? tx.quotas[name] : own.most;
}

/**
 * Throws a Problem if the team is at its quota. Locks the team, so that nobody creates another such object before the
 * commit.
 */
export async function requireRoom(
  tx: Tx,
  teamId: string,
  name: MadeQuota,
  { beyond, way }: { beyond: number; way?: string } = { beyond: 0 },
): Promise<void> {
  const most = await quotaOf(tx, teamId, name);
  if (most === null) return;
  await lockTeam(tx, teamId);
  const held = await countMade(tx, name, teamId);
  if (held >= most + beyond) throw quotaReached(name, most, way);
}

/**
 * Counts the records or bytes in the team's current versions, leaving out one workflow. Locks the team, so that no
 * other run of the team publishes before the commit. Reads two rows per workflow.
 */
export async function publishedBeside(
  tx: Tx,
  quota: PublishedQuota,
  teamId: string,
  workflowId: string,
): Promise<number> {
  await lockTeam(tx, teamId);
  return count(tx, IN_CURRENT[quota], teamId, workflowId);
}

function lockTeam(tx: Tx, teamId: string): Promise<void> {
  return tx.db.lock`select 1 from team where id = ${teamId} for no key update`;
}

const WORKFLOWS = 'select count(*) as held from workflow where team_id = $1 and archived_at is null';
// These statements name indexes for SQLite, which would otherwise also read all deleted, revoked and ended rows of the
// team.
const WEBHOOKS =
  "select count(*) as held from webhook /* use webhook_same */ where team_id = $1 and state <> 'deleted'";
const KEYS = `
  select count(*) as held from api_key /* use api_key_team */
  where team_id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)`;
const inCurrent = (column: 'total' | 'bytes') => `
  select coalesce(sum(version.${column}), 0)::bigint as held
  from workflow left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
    and version.number = workflow.current_version
  where workflow.team_id = $1 and workflow.archived_at is null and workflow.id <> $2`;
const IN_CURRENT = { records: inCurrent('total'), storedBytes: inCurrent('bytes') };
const RUNNING =
  "select count(*) as held from job /* use job_running */ where team_id = $1 and state = 'running'";

function countMade(view: View, name: MadeQuota, teamId: string): Promise<number> {
  if (name === 'keys') return count(view, KEYS, teamId, view.now);
  return count(view, name === 'workflows' ? WORKFLOWS : WEBHOOKS, teamId);
}

async function count(view: View, sql: string, ...at: (string | number)[]): Promise<number> {
  return (await view.db.get<{ held: number }>(sql, ...at))?.held ?? 0;
}
