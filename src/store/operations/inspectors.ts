/** Inspectors: temporary receivers for webhooks, and the requests that they received. */
import type { InspectedRequest, Inspector } from '../../model/inspector.ts';
import type { InspectorOperations } from '../inspector-operations.ts';
import { deletion, Part, type Tx, type View } from '../sql.ts';

type Input<Name extends keyof InspectorOperations> = Parameters<InspectorOperations[Name]>[0];
type Result<Name extends keyof InspectorOperations> = ReturnType<InspectorOperations[Name]>;

const COLUMNS = new Part(`
  team_id as "teamId", id, status, delay_ms as "delayMs", received, created_at as "createdAt",
  expires_at as "expiresAt"`);

export async function create(tx: Tx, input: Input<'create'>): Result<'create'> {
  const { teamId, id, status, delayMs, forMs, most } = input;
  // Locked, so that two that are created at the same moment count each other.
  await tx.db.run`select 1 from team where id = ${teamId} for update`;
  if ((await list(tx, { teamId })).length >= most) return undefined;
  return tx.db.get<Inspector>`
    insert into inspector (team_id, id, status, delay_ms, created_at, expires_at)
    values (${teamId}, ${id}, ${status}, ${delayMs}, ${tx.now}, ${tx.now + forMs}) returning ${COLUMNS}`;
}

export function list(view: View, { teamId }: Input<'list'>): Promise<Inspector[]> {
  return view.db.all<Inspector>`
    select ${COLUMNS} from inspector /* use inspector_team */
    where team_id = ${teamId} and expires_at > ${view.now} order by created_at, id`;
}

export function find(view: View, { id }: Input<'find'>): Result<'find'> {
  return view.db.get<Inspector>`
    select ${COLUMNS} from inspector where id = ${id} and expires_at > ${view.now}`;
}

export function change(tx: Tx, input: Input<'change'>): Result<'change'> {
  const { teamId, id, status = null, delayMs = null } = input;
  return tx.db.get<Inspector>`
    update inspector set status = coalesce(${status}, status), delay_ms = coalesce(${delayMs}, delay_ms)
    where id = ${id} and team_id = ${teamId} and expires_at > ${tx.now} returning ${COLUMNS}`;
}

/** Removes an inspector with its requests, including one that is being stored: that has locked the row. */
export async function remove(tx: Tx, { teamId, id }: Input<'remove'>): Result<'remove'> {
  const removed = await tx.db.run`
    delete from inspector where id = ${id} and team_id = ${teamId} and expires_at > ${tx.now}`;
  return removed > 0;
}

export async function storeRequest(tx: Tx, input: Input<'storeRequest'>): Result<'storeRequest'> {
  const { teamId, id, workflowId, most } = input;
  const { body, ...request } = input.request;
  // The row stays locked until the commit, so that there are never more than `most` requests.
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

export async function requests(view: View, input: Input<'requests'>): Result<'requests'> {
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

const SIGNERS = `
  select id as "webhookId", secret,
    case when previous_until > $1 then previous_secret end as "previousSecret"
  from webhook
  where team_id = $2 and state <> 'deleted' and id in (
    select * from (
      select delivery.webhook_id from event cross join delivery /* use delivery_event */
      where event.team_id = $2 and event.id = $3
        and delivery.team_id = event.team_id and delivery.event_sequence = event.sequence
      limit $5) of_event
    union all
    select * from (
      select id from webhook /* use webhook_same */
      where team_id = $2 and url = $4 and state <> 'deleted' limit $5) of_url)`;

export async function signers(view: View, input: Input<'signers'>): Result<'signers'> {
  const { teamId, eventId, url, limit } = input;
  const rows = await view.db.all<{ webhookId: string; secret: string; previousSecret: string | null }>(
    SIGNERS,
    view.now,
    teamId,
    eventId,
    url,
    limit,
  );
  return rows.map(({ webhookId, secret, previousSecret }) => ({
    webhookId,
    secrets: previousSecret === null ? [secret] : [secret, previousSecret],
  }));
}

const OLD_REQUESTS = deletion({
  table: 'inspected_request',
  key: 'team_id, inspector_id, number',
  index: 'inspected_request_of',
  first: 'where inspector_id in (select id from inspector where expires_at <= $1) limit $2',
});
const OLD = deletion({
  table: 'inspector',
  key: 'id',
  index: 'inspector_age',
  first: 'where expires_at <= $1 limit $2',
});

export async function prune(tx: Tx, { limit }: Input<'prune'>): Result<'prune'> {
  const requests = await tx.db.run(OLD_REQUESTS, tx.now, limit);
  if (requests >= limit) return { done: false };
  const inspectors = await tx.db.run(OLD, tx.now, limit);
  return { done: inspectors < limit };
}
