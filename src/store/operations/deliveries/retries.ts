/**
 * Retries send what has not arrived at many webhooks. A retry is one replay per webhook, started in one transaction, so
 * that orders, breakers and crashes are handled as for any replay (`replay-steps.ts`).
 */

import { DELIVERY_STATES, type DeliveryState } from '../../../model/delivery.ts';
import { newId } from '../../../std/id.ts';
import type { InTeam } from '../../rows.ts';
import { both, forEach } from '../../sql.ts';
import type { Tx, View } from '../../transaction.ts';
import { touchLane } from '../agenda.ts';
import { type IdempotencyKey, once } from '../idempotency.ts';
import { REPLAY, type Replay, type ReplayRow, toReplay } from './replays.ts';
import { inLabels, type Narrowing } from './search.ts';

/** Number of webhooks that a retry may have at most. */
export const MAX_RETRIED_WEBHOOKS = 1_000;

/** Deliveries to one webhook or to all, created in a period (epoch milliseconds, both inclusive). */
export interface RetrySelection {
  teamId: string;
  webhookId?: string;
  /** A label of the webhooks. */
  label?: string;
  states: readonly DeliveryState[];
  since: number;
  until: number;
  narrowing: Narrowing;
}

// The scalar subquery keeps PostgreSQL from reading all deliveries in these states.
const RETRYABLE = both(
  (pick) => `
  select webhook.id from webhook
  where team_id = $1 and (state || '') <> 'deleted' and id > $2 and ($3 = '' or id = $3)
    and strpos(labels, $9) > 0
    and ($4 = '' or coalesce(workflow_id, $4) = $4)
    and (select true from unnest($5::text[]) as of_state (name) where (
      select true from delivery ${pick({ sqlite: 'indexed by delivery_history', postgres: '' })}
      where delivery.team_id = $1 and webhook_id = webhook.id and (delivery.state || '') = of_state.name
        and delivery.created_at between $6 and $7
      limit 1) limit 1)
  order by id limit $8`,
);

/**
 * Lists webhooks that have deliveries in these states and in this period, after the webhook `after`. With a narrowing,
 * none of these deliveries may match.
 */
export async function retryable(
  view: View,
  { after = '', limit, ...of }: RetrySelection & { after?: string | undefined; limit: number },
): Promise<{ id: string }[]> {
  const { teamId, webhookId = '', label, states, since, until, narrowing } = of;
  const workflowId = narrowing.workflowId ?? '';
  return view.db.all(
    RETRYABLE,
    teamId,
    after,
    webhookId,
    workflowId,
    states,
    since,
    until,
    limit,
    inLabels(label),
  );
}

const INTO = `
  insert into replay
    (team_id, id, webhook_id, states, since, until, state, created_at, narrowing, retry_id)`;
const START = {
  sqlite: `${INTO}
    select $1, $8, id, $2, $3, $4, 'running', $5, $6, $7
    from webhook where team_id = $1 and id = $9 and (state || '') <> 'deleted' returning webhook_id as id`,
  postgres: `${INTO}
    select $1, given.id, webhook.id, $2, $3, $4, 'running', $5, $6, $7
    from unnest($8::text[], $9::text[]) as given (id, webhook_id)
    join webhook on webhook.team_id = $1 and webhook.id = given.webhook_id and (webhook.state || '') <> 'deleted'
    returning webhook_id as id`,
};

/**
 * Starts a replay of each of these webhooks. Returns the id of the retry, or undefined if none of the webhooks exists. An
 * idempotency key is scoped to the team.
 */
export async function startRetry(
  tx: Tx,
  input: Omit<RetrySelection, 'webhookId' | 'label'> & {
    webhookIds: readonly string[];
    idempotencyKey?: IdempotencyKey;
  },
): Promise<string | undefined> {
  const { teamId, idempotencyKey = null } = input;
  const call = { teamId, operation: 'deliveries.startRetry', target: '', idempotencyKey } as const;
  return once(tx, call, () => begin(tx, input));
}

async function begin(tx: Tx, input: Parameters<typeof startRetry>[1]): Promise<string | undefined> {
  const { teamId, webhookIds, states, since, until, narrowing } = input;
  const id = newId('rty', tx.now);
  const chosen = JSON.stringify(DELIVERY_STATES.filter((state) => states.includes(state)));
  // The period ends now at the latest. Otherwise the replays would select their own deliveries and never end.
  const end = Math.min(until, tx.now);
  const started = await forEach<{ id: string }>(
    tx.db,
    START,
    [teamId, chosen, since, end, tx.now, JSON.stringify(narrowing), id],
    webhookIds.map((webhookId) => [newId('rpl', tx.now), webhookId]),
  );
  for (const webhook of started) touchLane(tx, teamId, webhook.id);
  return started.length === 0 ? undefined : id;
}

/** Returns the replays of a retry, by the ids of their webhooks; none if the retry does not exist. */
export async function replaysOfRetry(view: View, { teamId, id }: InTeam): Promise<Replay[]> {
  const rows = await view.db.all<ReplayRow>`
    select ${REPLAY} from replay /* use replay_retry */
    where team_id = ${teamId} and retry_id = ${id} order by webhook_id limit ${MAX_RETRIED_WEBHOOKS}`;
  return rows.map(toReplay);
}
