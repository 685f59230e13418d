/** The webhook of one trigger node: created once, found again after a restart, and removed with the node. */
import type { IDataObject, IHookFunctions } from 'n8n-workflow';
import { ask } from './ask.ts';
import { readPages } from './pages.ts';

const WEBHOOKS = '/v1/integrations/webhooks';
/** The service allows 1,000 for each workflow. */
const MOST = 100_000;

/** The webhook that a node needs. */
export interface Wanted {
  url: string;
  /** null: every workflow of the team. */
  workflowId: string | null;
  events: readonly string[];
  /** null: everything is sent. */
  filter: string | null;
}

/** What a node stores about its webhook. */
export interface Kept extends IDataObject {
  id: string;
  url: string;
  /** The instance, workflow and node that created it: a copied workflow must not use the webhook of the original. */
  owner: string;
}

interface Listed extends IDataObject {
  id: string;
  url: string;
  workflowId: string | null;
  events: string[];
  /** Missing in servers before filters. */
  filter?: string | null;
  state: string;
}

/** Whether the right webhook exists and is active: a paused one must be subscribed again. */
export async function isSubscribed(caller: IHookFunctions, wanted: Wanted, kept?: Kept): Promise<boolean> {
  const webhook = await find(caller, wanted, kept);
  return webhook !== undefined && webhook.state === 'active';
}

/**
 * Subscribes the webhook. Repeating this creates nothing, so it is safe after a lost response.
 *
 * @returns the id of the webhook, and the message of the service
 */
export async function subscribe(
  caller: IHookFunctions,
  wanted: Wanted,
): Promise<{ id: string; message: string }> {
  const { url, workflowId, events, filter } = wanted;
  // Servers before filters know the path without /subscribe only for all workflows.
  const isSimple = workflowId !== null && filter === null;
  const { headers, body } = await ask<{ message?: string }>(caller, {
    method: 'POST',
    path: isSimple ? `${WEBHOOKS}/subscribe` : WEBHOOKS,
    body: {
      webhookUrl: url,
      events,
      ...(workflowId === null ? {} : { workflowId }),
      ...(filter === null ? {} : { filter }),
    },
  });
  // A proxy may have dropped the header.
  const id = headers['x-webhook-id'] ?? (await find(caller, wanted))?.id ?? '';
  return { id, message: body.message ?? `Webhook ${id} is subscribed` };
}

/** Unsubscribes the webhook of this node, and no other. Does nothing if it no longer exists. */
export async function unsubscribe(caller: IHookFunctions, wanted: Wanted, kept?: Kept): Promise<void> {
  const id = kept?.id ?? (await find(caller, wanted))?.id;
  if (id !== undefined) await unsubscribeById(caller, id);
}

async function unsubscribeById(caller: IHookFunctions, id: string): Promise<void> {
  const path = `${WEBHOOKS}/unsubscribe/${encodeURIComponent(id)}`;
  await ask(caller, { method: 'DELETE', path, accept: [404] });
}

/** Finds the webhook by its stored id, or else by the exact URL, the workflow and the events. */
async function find(caller: IHookFunctions, wanted: Wanted, kept?: Kept): Promise<Listed | undefined> {
  if (kept !== undefined) {
    const path = `${WEBHOOKS}/${encodeURIComponent(kept.id)}`;
    const { status, body } = await ask<Listed>(caller, { path, accept: [404] });
    if (status === 200 && isWanted(body, wanted)) return body;
  }
  const { workflowId } = wanted;
  for await (const webhook of readPages<Listed>(caller, {
    path: WEBHOOKS,
    query: workflowId === null ? {} : { workflowId },
    under: 'webhooks',
    most: MOST,
  })) {
    if (isWanted(webhook, wanted)) return webhook;
  }
  return undefined;
}

function isWanted(webhook: Listed, { url, workflowId, events, filter }: Wanted): boolean {
  return (
    webhook.url === url &&
    (webhook.filter ?? null) === filter &&
    webhook.workflowId === workflowId &&
    webhook.events.length === events.length &&
    webhook.events.every((event) => events.includes(event))
  );
}
