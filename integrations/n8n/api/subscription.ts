/** The webhook of one trigger node: found again after a restart, made once, ended with the node. */
import type { IDataObject, IHookFunctions } from 'n8n-workflow';
import { ask } from './ask.ts';
import { readPages } from './pages.ts';

const WEBHOOKS = '/v1/integrations/webhooks';
/** A service allows 1,000 for each workflow. */
const MOST = 100_000;

/** What a node listens to. */
export interface Wanted {
  url: string;
  /** null: every workflow of the team. */
  workflowId: string | null;
  events: readonly string[];
}

/** What a node remembers of its webhook. */
export interface Kept extends IDataObject {
  id: string;
  url: string;
  /** The instance, workflow and node that made it: what is copied along with a workflow belongs to another one. */
  owner: string;
}

interface Listed extends IDataObject {
  id: string;
  url: string;
  workflowId: string | null;
  events: string[];
  state: string;
}

/** Whether the webhook is there as it is wanted, and is sent to: a paused one has to be subscribed once more. */
export async function isSubscribed(caller: IHookFunctions, wanted: Wanted, kept?: Kept): Promise<boolean> {
  const webhook = await find(caller, wanted, kept);
  return webhook !== undefined && webhook.state === 'active';
}

/**
 * Repeating it creates nothing, so that whoever lost the answer may ask again.
 *
 * @returns the webhook's id, and what the service remarks on it
 */
export async function subscribe(
  caller: IHookFunctions,
  { url, workflowId, events }: Wanted,
): Promise<{ id: string; message: string }> {
  const { headers, body } = await ask<{ message: string }>(caller, {
    method: 'POST',
    ...(workflowId === null
      ? { path: WEBHOOKS, body: { webhookUrl: url, events } }
      : { path: `${WEBHOOKS}/subscribe`, body: { workflowId, webhookUrl: url, events } }),
  });
  // Something between may have dropped the header.
  const id = headers['x-webhook-id'] ?? (await find(caller, { url, workflowId, events }))?.id ?? '';
  return { id, message: body.message };
}

/** Ends the webhook of this node, and no other. One that is gone is fine. */
export async function unsubscribe(caller: IHookFunctions, wanted: Wanted, kept?: Kept): Promise<void> {
  const id = kept?.id ?? (await find(caller, wanted))?.id;
  if (id !== undefined) await unsubscribeById(caller, id);
}

async function unsubscribeById(caller: IHookFunctions, id: string): Promise<void> {
  const path = `${WEBHOOKS}/unsubscribe/${encodeURIComponent(id)}`;
  await ask(caller, { method: 'DELETE', path, accept: [404] });
}

/** By the id that is remembered; else by all that makes it this node's: the exact URL, the workflow, the events. */
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

function isWanted(webhook: Listed, { url, workflowId, events }: Wanted): boolean {
  return (
    webhook.url === url &&
    webhook.workflowId === workflowId &&
    webhook.events.length === events.length &&
    webhook.events.every((event) => events.includes(event))
  );
}
