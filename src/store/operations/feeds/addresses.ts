/** The secret addresses of feeds, and those that have ended. */
import type { Feed } from '../../../model/messages/feed.ts';
import type { InTeam } from '../../rows.ts';
import { deletion, Part } from '../../sql.ts';
import type { Tx, View } from '../../transaction.ts';
import { makeDue, VISIT_MS } from '../agenda.ts';

/** The token of an address: its hash, by which requests find the feed, and the token itself, sealed. */
export interface FeedToken {
  hash: string;
  sealed: string;
}

/** A feed as a request to its address sees it, and what shows whether its entries have changed. */
export interface OpenedFeed extends Feed {
  /** The newest version of the workflow; 0 before the first. */
  version: number;
  /** When it was published; null before the first. */
  publishedAt: number | null;
  /** How often records of the workflow, and events of the team, have been erased. */
  erasures: number;
  rewrites: number;
}

/** A row of a feed. */
export const FEED = new Part(`
  feed.team_id as "teamId", feed.id, feed.workflow_id as "workflowId", feed.title, feed.filter, feed.entries,
  feed.window_ms as "windowMs", feed.most, feed.token, feed.revision, feed.created_at as "createdAt",
  feed.changed_at as "changedAt"`);

/**
 * Finds the feed at an address. `ended` if the feed was revoked or has another address now; undefined if there was none,
 * or if its workflow is archived.
 */
export async function open(
  view: View,
  { teamId, hash }: { teamId: string; hash: string },
): Promise<OpenedFeed | 'ended' | undefined> {
  // The workflow is named by a subquery, because PostgreSQL would otherwise read all workflows of the team.
  const feed = await view.db.get<OpenedFeed>`
    select ${FEED}, workflow.current_version as version, published_at as "publishedAt", workflow.erasures,
           team.rewrites
    from feed
    join team on team.id = feed.team_id
    join workflow on workflow.team_id = feed.team_id and archived_at is null and workflow.id = (
      select workflow_id from feed named where named.team_id = ${teamId} and named.token_hash = ${hash})
    left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                     and version.number = workflow.current_version
    where feed.team_id = ${teamId} and feed.token_hash = ${hash}`;
  if (feed !== undefined) return feed;
  const ended = await view.db.get`
    select 1 from ended_feed where team_id = ${teamId} and token_hash = ${hash}`;
  return ended === undefined ? undefined : 'ended';
}

/** Ends the address of a feed. Returns false if there is no such feed. The caller gives it another address, or deletes it. */
export async function endAddress(
  tx: Tx,
  { teamId, workflowId, id }: InTeam & { workflowId: string },
): Promise<boolean> {
  const feed = await tx.db.get<{ hash: string }>`
    select token_hash as hash from feed
    where team_id = ${teamId} and id = ${id} and workflow_id = ${workflowId} for update`;
  if (feed === undefined) return false;
  await tx.db.run`
    insert into ended_feed (team_id, token_hash, ended_at) values (${teamId}, ${feed.hash}, ${tx.now})`;
  makeDue(tx, teamId, 'prune', tx.now + VISIT_MS);
  return true;
}

const OLD = deletion({
  table: 'ended_feed',
  key: 'team_id, token_hash',
  first: 'where team_id = $1 and ended_at <= $2 order by ended_at, token_hash limit $3',
});

/**
 * Forgets addresses that ended more than `olderMs` ago, at most `limit` per call; call until `done`. `at` is when the
 * next one can be forgotten.
 */
export async function prune(
  tx: Tx,
  { teamId, olderMs, limit }: { teamId: string; olderMs: number; limit: number },
): Promise<{ done: boolean; at: number | null }> {
  if ((await tx.db.run(OLD, teamId, tx.now - olderMs, limit)) >= limit) return { done: false, at: null };
  const first = await tx.db.get<{ at: number }>`
    select ended_at as at from ended_feed where team_id = ${teamId} order by ended_at limit 1`;
  return { done: true, at: first === undefined ? null : first.at + olderMs };
}
