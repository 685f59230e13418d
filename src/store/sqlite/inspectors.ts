/** Inspectors: webhook receivers for trying things out, which last a day, and the requests sent to them. */
import type { Inspector } from '../../model/inspector.ts';
import type { InspectorOperations } from '../inspector-operations.ts';
import { type InspectedRow, type InspectorRow, toInspected, toInspector } from '../inspector-row.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof InspectorOperations> = Parameters<InspectorOperations[Name]>[0];
type Result<Name extends keyof InspectorOperations> = Awaited<ReturnType<InspectorOperations[Name]>>;

export function create(tx: Tx, input: Input<'create'>): Result<'create'> {
  const { teamId, id, status, delayMs, forMs, most } = input;
  if (list(tx, { teamId }).length >= most) return undefined;
  const row = tx.db.get<InspectorRow>(
    `insert into inspector (team_id, id, status, delay_ms, created_at, expires_at)
     values (?, ?, ?, ?, ?, ?) returning *`,
    teamId,
    id,
    status,
    delayMs,
    tx.now,
    tx.now + forMs,
  ) as InspectorRow;
  return toInspector(row);
}

export function list(view: View, { teamId }: Input<'list'>): Inspector[] {
  return view.db
    .all<InspectorRow>(
      `select * from inspector indexed by inspector_team
       where team_id = ? and expires_at > ? order by created_at, id`,
      teamId,
      view.now,
    )
    .map(toInspector);
}

export function find(view: View, { id }: Input<'find'>): Result<'find'> {
  const row = view.db.get<InspectorRow>(
    'select * from inspector where id = ? and expires_at > ?',
    id,
    view.now,
  );
  return row && toInspector(row);
}

export function change(tx: Tx, input: Input<'change'>): Result<'change'> {
  const { teamId, id, status = null, delayMs = null } = input;
  const row = tx.db.get<InspectorRow>(
    `update inspector set status = coalesce(?, status), delay_ms = coalesce(?, delay_ms)
     where id = ? and team_id = ? and expires_at > ? returning *`,
    status,
    delayMs,
    id,
    teamId,
    tx.now,
  );
  return row && toInspector(row);
}

export function remove(tx: Tx, { teamId, id }: Input<'remove'>): boolean {
  return (
    tx.db.run('delete from inspector where id = ? and team_id = ? and expires_at > ?', id, teamId, tx.now) > 0
  );
}

export function keep(tx: Tx, input: Input<'keep'>): Result<'keep'> {
  const { teamId, id, workflowId, most } = input;
  const { body, ...request } = input.request;
  const inspector = tx.db.get<{ received: number }>(
    `update inspector set received = received + 1
     where id = ? and team_id = ? and expires_at > ? returning received`,
    id,
    teamId,
    tx.now,
  );
  if (inspector === undefined) return undefined;
  const { received: number } = inspector;
  tx.db.run(
    `insert into inspected_request (team_id, inspector_id, number, received_at, workflow_id, request, body)
     values (?, ?, ?, ?, ?, ?, ?)`,
    teamId,
    id,
    number,
    tx.now,
    workflowId,
    JSON.stringify(request),
    body,
  );
  tx.db.run(
    'delete from inspected_request where team_id = ? and inspector_id = ? and number <= ?',
    teamId,
    id,
    number - most,
  );
  return number;
}

export function requests(view: View, input: Input<'requests'>): Result<'requests'> {
  const { teamId, id, after = 0, before = Number.MAX_SAFE_INTEGER, limit } = input;
  return view.db
    .all<InspectedRow>(
      `select number, received_at, request, body from inspected_request
       where team_id = ? and inspector_id = ? and number > ? and number < ? order by number desc limit ?`,
      teamId,
      id,
      after,
      before,
      limit,
    )
    .map(toInspected);
}

const SIGNERS = `
  select id as webhookId, secret, iif(previous_until > ?1, previous_secret, null) as previousSecret
  from webhook
  where team_id = ?2 and state <> 'deleted' and id in (
    select id from (
      select delivery.webhook_id as id from event
      cross join delivery indexed by delivery_event
        on delivery.team_id = event.team_id and delivery.event_sequence = event.sequence
      where event.team_id = ?2 and event.id = ?3 limit ?5)
    union
    select id from (
      select id from webhook indexed by webhook_same
      where team_id = ?2 and url = ?4 and state <> 'deleted' limit ?5))`;

export function signers(view: View, { teamId, eventId, url, limit }: Input<'signers'>): Result<'signers'> {
  return view.db
    .all<{ webhookId: string; secret: string; previousSecret: string | null }>(
      SIGNERS,
      view.now,
      teamId,
      eventId,
      url,
      limit,
    )
    .map(({ webhookId, secret, previousSecret }) => ({
      webhookId,
      secrets: previousSecret === null ? [secret] : [secret, previousSecret],
    }));
}

export function prune(tx: Tx, { limit }: Input<'prune'>): Result<'prune'> {
  const requests = tx.db.run(
    `delete from inspected_request where (inspector_id, number) in
       (select inspected_request.inspector_id, inspected_request.number
        from inspector indexed by inspector_age
        cross join inspected_request indexed by inspected_request_of
          on inspected_request.inspector_id = inspector.id
        where inspector.expires_at <= ? limit ?)`,
    tx.now,
    limit,
  );
  if (requests >= limit) return { done: false };
  const inspectors = tx.db.run(
    `delete from inspector where id in
       (select id from inspector indexed by inspector_age where expires_at <= ? limit ?)`,
    tx.now,
    limit,
  );
  return { done: inspectors < limit };
}
