/** Feeds of workflows, and the addresses that they had before. */

import { type Feed, type FeedSettings, MAX_FEEDS } from '../../../model/messages/feed.ts';
import { newId } from '../../../std/id.ts';
import type { InTeam } from '../../rows.ts';
import type { Tx, View } from '../../transaction.ts';
import { type IdempotencyKey, once } from '../idempotency.ts';
import { lockWorkflow } from '../workflows.ts';
import { endAddress, FEED, type FeedToken } from './addresses.ts';

type InWorkflow = InTeam & { workflowId: string };

/**
 * Creates a feed. Repeating an idempotency key within 24 h returns the feed that the first call created; undefined if
 * it was revoked.
 */
export async function create(
  tx: Tx,
  input: FeedSettings & {
    teamId: string;
    workflowId: string;
    token: FeedToken;
    idempotencyKey?: IdempotencyKey;
  },
): Promise<{ outcome: 'created'; feed: Feed | undefined } | { outcome: 'not_found' } | { outcome: 'full' }> {
  const { teamId, workflowId, token, idempotencyKey = null } = input;
  const workflow = await lockWorkflow(tx, teamId, workflowId);
  if (workflow === undefined || workflow.archivedAt !== null) return { outcome: 'not_found' };
  const call = { teamId, operation: 'feeds.create', target: workflowId, idempotencyKey } as const;
  const id = await once(tx, call, async () => {
    if ((await list(tx, { teamId, workflowId })).length >= MAX_FEEDS) return undefined;
    const { title, filter, entries, windowMs, most } = input;
    const made = newId('feed', tx.now);
    await tx.db.run`
      insert into feed (team_id, id, workflow_id, title, filter, entries, window_ms, most, token, token_hash, revision,
        created_at, changed_at)
      values (${teamId}, ${made}, ${workflowId}, ${title}, ${filter}, ${entries}, ${windowMs}, ${most},
        ${token.sealed}, ${token.hash}, 1, ${tx.now}, ${tx.now})`;
    return made;
  });
  if (id === undefined) return { outcome: 'full' };
  return { outcome: 'created', feed: await get(tx, { teamId, workflowId, id }) };
}

/** The feeds of a workflow, oldest first. */
export function list(view: View, { teamId, workflowId }: Omit<InWorkflow, 'id'>): Promise<Feed[]> {
  return view.db.all<Feed>`
    select ${FEED} from feed /* use feed_workflow */
    where team_id = ${teamId} and workflow_id = ${workflowId} order by id`;
}

export function get(view: View, { teamId, workflowId, id }: InWorkflow): Promise<Feed | undefined> {
  return view.db.get<Feed>`
    select ${FEED} from feed where team_id = ${teamId} and id = ${id} and workflow_id = ${workflowId}`;
}

/**
 * Changes settings; those that are not given stay unchanged. With `expected`, nothing changes unless the feed has this
 * revision; the result is then `stale`.
 */
export async function change(
  tx: Tx,
  input: InWorkflow & { settings: Partial<FeedSettings>; expected?: number | undefined },
): Promise<Feed | 'stale' | undefined> {
  const { teamId, id, settings, expected } = input;
  await tx.db.lock`select 1 from feed where team_id = ${teamId} and id = ${id} for update`;
  const before = await get(tx, input);
  if (before === undefined) return undefined;
  if (expected !== undefined && before.revision !== expected) return 'stale';
  const { title, filter, entries, windowMs, most } = { ...before, ...settings };
  await tx.db.run`
    update feed set title = ${title}, filter = ${filter}, entries = ${entries}, window_ms = ${windowMs},
      most = ${most}, revision = revision + 1, changed_at = ${tx.now}
    where team_id = ${teamId} and id = ${id}`;
  return get(tx, input);
}

/** Gives a feed a new address. The previous one ends immediately. */
export async function rotate(tx: Tx, input: InWorkflow & { token: FeedToken }): Promise<Feed | undefined> {
  const { teamId, id, token } = input;
  if (!(await endAddress(tx, input))) return undefined;
  await tx.db.run`
    update feed set token = ${token.sealed}, token_hash = ${token.hash} where team_id = ${teamId} and id = ${id}`;
  return get(tx, input);
}

/** Deletes a feed. Returns whether there was one. */
export async function revoke(tx: Tx, input: InWorkflow): Promise<boolean> {
  if (!(await endAddress(tx, input))) return false;
  await tx.db.run`delete from feed where team_id = ${input.teamId} and id = ${input.id}`;
  return true;
}
