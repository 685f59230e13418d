/**
 * Inspectors are temporary receivers for webhooks that store the requests they receive. All functions treat an expired
 * inspector as if it did not exist.
 */

import type { InspectedRequest, Inspector } from '../../model/inspector.ts';
import type { InTeam } from '../rows.ts';
import { deletion, Part } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { makeDue } from './agenda.ts';

/** A webhook whose secret may have signed an inspected request. */
export interface Signer {
  webhookId: string;
  /** Encrypted secrets: the current one and, while it is still valid, the previous one. */
  secrets: string[];
}

const COLUMNS = new Part(`
  team_id as "teamId", id, status, delay_ms as "delayMs", received, created_at as "createdAt",
  expires_at as "expiresAt"`);

/** Creates an inspector; undefined if the team already has `most`. */
export async function create(
  tx: Tx,
  input: {
    teamId: string;
    id: string;
    status: number;
    delayMs: number;
    forMs: number;
    most: number;
  },
): Promise<Inspector | undefined> {
  const { teamId, id, status, delayMs, forMs, most } = input;
  // The team is locked, so that the second of two simultaneous calls counts the inspector that the first one creates.
  await tx.db.run`select 1 from team where id = ${teamId} for update`;
  if ((await list(tx, { teamId })).length >= most) return undefined;
  makeDue(tx, teamId, 'prune', tx.now + forMs);
  return tx.db.get<Inspector>`
    insert into inspector (team_id, id, status, delay_ms, created_at, expires_at)
    values (${teamId}, ${id}, ${status}, ${delayMs}, ${tx.now}, ${tx.now + forMs}) returning ${COLUMNS}`;
}

/** A team's inspectors, oldest first. */
export function list(view: View, { teamId }: { teamId: string }): Promise<Inspector[]> {
  return view.db.all<Inspector>`
    select ${COLUMNS} from inspector /* use inspector_team */
    where team_id = ${teamId} and expires_at > ${view.now} order by created_at, id`;
}

/** Finds an inspector of any team, to handle a request that was sent to the inspector. */
export function find(view: View, { id }: { id: string }): Promise<Inspector | undefined> {
  return view.db.get<Inspector>`
    select ${COLUMNS} from inspector where id = ${id} and expires_at > ${view.now}`;
}

/** Changes the inspector's response; values that are not given stay unchanged. */
export function change(
  tx: Tx,
  input: { teamId: string; id: string; status?: number; delayMs?: number },
): Promise<Inspector | undefined> {
  const { teamId, id, status = null, delayMs = null } = input;
  return tx.db.get<Inspector>`
    update inspector set status = coalesce(${status}, status), delay_ms = coalesce(${delayMs}, delay_ms)
    where id = ${id} and team_id = ${teamId} and expires_at > ${tx.now} returning ${COLUMNS}`;
}

/**
 * Removes an inspector with its requests, including a request that is being stored. Returns whether the inspector
 * existed.
 */
export async function remove(tx: Tx, { teamId, id }: InTeam): Promise<boolean> {
  const removed = await tx.db.run`
    delete from inspector where id = ${id} and team_id = ${teamId} and expires_at > ${tx.now}`;
  return removed > 0;
}

/**
 * Stores a request, and deletes all but the newest `most` requests. Returns the number of the request, counted from 1,
 * or undefined if the inspector is gone. `workflowId` is the workflow of the event in the request; erasures use it to
 * find the request.
 */
export async function storeRequest(
  tx: Tx,
  input: { teamId: string; id: string; workflowId: string | null; request: InspectedRequest; most: number },
): Promise<number | undefined> {
  const { teamId, id, workflowId, most } = input;
  const { body, ...request } = input.request;
  // The inspector's row stays locked until the commit, so that the inspector never has more than `most` requests.
  const inspector = await tx.db.get<{ received: number }>`
    update inspector set received = received + 1
    where id = ${id} and team_id = ${teamId} and expires_at > ${tx.now} returning received`;
  if (inspector === undefined) return undefined;
  const { received: number } = inspector;
  await Promise.all([
    tx.db.run`
      insert into inspected_request (team_id, inspector_id, number, received_at, workflow_id, request, body)
      values (${teamId}, ${id}, ${number}, ${tx.now}, ${workflowId}, ${JSON.stringify(request)}, ${body})`,
    tx.db.run`
      delete from inspected_request where team_id = ${teamId} and inspector_id = ${id}
        and number <= ${number - most}`,
  ]);
  return number;
}

/** Requests of an inspector with numbers between `after` and `before`, both exclusive; newest first. */
export async function requests(
  view: View,
  input: { teamId: string; id: string; after?: number; before?: number; limit: number },
): Promise<(InspectedRequest & { number: number; receivedAt: number })[]> {
  const { teamId, id, after = 0, before = Number.MAX_SAFE_INTEGER, limit } = input;
  const rows = await view.db.all<{ number: number; receivedAt: number; request: string; body: string }>`
    select number, received_at as "receivedAt", request, body from inspected_request
    where team_id = ${teamId} and inspector_id = ${id} and number > ${after} and number < ${before}
    order by number desc limit ${limit}`;
  return rows.map(({ request, ...row }) => ({
    ...(JSON.parse(request) as Omit<InspectedRequest, 'body'>),
    ...row,
  }));
}

/**
 * Lists webhooks with a delivery of this event, and webhooks with exactly this URL. Returns at most `limit` of each
 * kind.
 */
export async function signers(
  view: View,
  input: { teamId: string; eventId: string; url: string; limit: number },
): Promise<Signer[]> {
  const { teamId, eventId, url, limit } = input;
  const rows = await view.db.all<{ webhookId: string; secret: string; previousSecret: string | null }>`
    select id as "webhookId", secret,
      case when previous_until > ${view.now} then previous_secret end as "previousSecret"
    from webhook
    where team_id = ${teamId} and state <> 'deleted' and id in (
      select * from (
        select delivery.webhook_id from event cross join delivery /* use delivery_event */
        where event.team_id = ${teamId} and event.id = ${eventId}
          and delivery.team_id = event.team_id and delivery.event_sequence = event.sequence
        limit ${limit}) of_event
      union all
      select * from (
        select id from webhook /* use webhook_same */
        where team_id = ${teamId} and url = ${url} and state <> 'deleted' limit ${limit}) of_url)`;
  return rows.map(({ webhookId, secret, previousSecret }) => ({
    webhookId,
    secrets: previousSecret === null ? [secret] : [secret, previousSecret],
  }));
}

const OLD_REQUESTS = deletion({
  table: 'inspected_request',
  key: 'team_id, inspector_id, number',
  first: 'where team_id = $1 and inspector_id = $2 order by number limit $3',
});

/**
 * Deletes a team's expired inspectors and their requests, at most `limit` requests per call; call until `done`. `at` is
 * when the next inspector expires.
 */
export async function prune(
  tx: Tx,
  { teamId, limit }: { teamId: string; limit: number },
): Promise<{ done: boolean; at: number | null }> {
  const all = await tx.db.all<{ id: string; at: number }>`
    select id, expires_at as at from inspector where team_id = ${teamId} order by created_at, id`;
  let room = limit;
  for (const { id, at } of all) {
    if (at > tx.now) continue;
    room -= await tx.db.run(OLD_REQUESTS, teamId, id, room);
    if (room <= 0) return { done: false, at: null };
    await tx.db
      .run`delete from inspector where team_id = ${teamId} and id = ${id} and expires_at <= ${tx.now}`;
  }
  const open = all.map(({ at }) => at).filter((at) => at > tx.now);
  return { done: true, at: open.length === 0 ? null : Math.min(...open) };
}
