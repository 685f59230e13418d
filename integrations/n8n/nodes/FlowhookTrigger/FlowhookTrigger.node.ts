/** Starts a workflow of n8n when something happens in Flowhook: one webhook for each active node. */
import type {
  IDataObject,
  IHookFunctions,
  ILoadOptionsFunctions,
  INodePropertyOptions,
  INodeType,
  INodeTypeDescription,
  IWebhookFunctions,
  IWebhookResponseData,
} from 'n8n-workflow';
import { NodeConnectionTypes, NodeOperationError } from 'n8n-workflow';
import { EVENTS } from '../../api/events.ts';
import { isNew } from '../../api/seen.ts';
import { type Arrived, isSigned, signingKeys } from '../../api/signature.ts';
import { isSubscribed, type Kept, subscribe, unsubscribe, type Wanted } from '../../api/subscription.ts';
import { listWorkflowOptions } from '../../api/workflow-list.ts';

/** Minimum time between two fetches of the keys: unsigned requests must not cause one each. */
const KEYS_AGAIN_MS = 60_000;

export class FlowhookTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Flowhook Trigger',
    name: 'flowhookTrigger',
    icon: { light: 'file:../../icons/flowhook.svg', dark: 'file:../../icons/flowhook.dark.svg' },
    group: ['trigger'],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: 'Starts the workflow when something happens in Flowhook',
    defaults: { name: 'Flowhook Trigger' },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: 'flowhookApi', required: true }],
    webhooks: [{ name: 'default', httpMethod: 'POST', responseMode: 'onReceived', path: 'webhook' }],
    properties: [
      {
        displayName: 'Events',
        name: 'events',
        type: 'multiOptions',
        required: true,
        default: ['workflow_finished'],
        options: EVENTS,
        description: 'What starts the workflow',
      },
      {
        displayName: 'Workflow Name or ID',
        name: 'workflowId',
        type: 'options',
        typeOptions: { loadOptionsMethod: 'getWorkflows' },
        default: '',
        description:
          'A workflow of Flowhook; "All Workflows" includes workflows that are created later. Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>.',
      },
      {
        displayName: 'Filter',
        name: 'filter',
        type: 'string',
        default: '',
        placeholder: 'fallsBy(previous.price, record.price, "5%")',
        description:
          'Start only if this expression of Flowhook is true; the event then contains only the records that match. <a href="https://github.com/flowhook/flowhook/blob/main/docs/guides/filters.md">Examples</a>.',
      },
    ],
  };

  methods = {
    loadOptions: {
      async getWorkflows(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
        return [{ name: 'All Workflows', value: '' }, ...(await listWorkflowOptions(this))];
      },
    },
  };

  webhookMethods = {
    default: {
      /** Called at every start of n8n and before each activation. */
      async checkExists(this: IHookFunctions): Promise<boolean> {
        return isSubscribed(this, wanted(this), keptOf(this));
      },

      async create(this: IHookFunctions): Promise<boolean> {
        const own = wanted(this);
        // First, because this can fail without leaving a webhook behind.
        const keys = await signingKeys(this);
        // An outdated webhook of this node: the node was changed while Flowhook was unavailable.
        const before = keptOf(this);
        const { id, message } = await subscribe(this, own);
        if (id === '') {
          throw new NodeOperationError(
            this.getNode(),
            'Flowhook accepted the subscription, but does not list it',
          );
        }
        const data = this.getWorkflowStaticData('node');
        data[slot(this)] = { id, url: own.url, owner: owner(this) };
        data.keys = keys;
        this.logger.info(message);
        if (before !== undefined && before.id !== id) await unsubscribe(this, own, before);
        return true;
      },

      async delete(this: IHookFunctions): Promise<boolean> {
        try {
          await unsubscribe(this, wanted(this), keptOf(this));
        } catch (error) {
          // An exception would keep n8n from removing its own route. The id is kept, so the next activation finds the webhook.
          this.logger.warn(`The webhook of ${owner(this)} could not be removed: ${(error as Error).message}`);
          return false;
        }
        delete this.getWorkflowStaticData('node')[slot(this)];
        return true;
      },
    },
  };

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const arrived = await arrivedAt(this);
    let signed: boolean;
    try {
      signed = await isGenuine(this, arrived);
    } catch (error) {
      return respond(this, 503, `The signing keys cannot be read: ${(error as Error).message}`);
    }
    if (!signed)
      return respond(this, 401, 'This request was not signed by the team in Flowhook, or is too old');
    const event = JSON.parse(Buffer.from(arrived.body).toString()) as IDataObject;
    if (!isAskedFor(this, event))
      return { webhookResponse: { message: 'This node does not listen to this event' } };
    const node = `${this.getWorkflow().id} ${this.getNode().id} ${this.getMode()}`;
    if (!isNew(String(event.id), { node, nowMs: Date.now() })) {
      return { webhookResponse: { message: 'This event was already received' } };
    }
    return { workflowData: [[{ json: event }]] };
  }
}

function wanted(caller: IHookFunctions): Wanted {
  const url = caller.getNodeWebhookUrl('default');
  if (url === undefined)
    throw new NodeOperationError(caller.getNode(), 'n8n has no address for this webhook');
  const events = caller.getNodeParameter('events', []) as string[];
  if (events.length === 0) {
    throw new NodeOperationError(caller.getNode(), 'Choose at least one event that starts the workflow');
  }
  return {
    url,
    events,
    workflowId: String(caller.getNodeParameter('workflowId', '') ?? '') || null,
    filter: String(caller.getNodeParameter('filter', '') ?? '').trim() || null,
  };
}

/** The test and the production of a workflow have different URLs, and therefore different webhooks. */
function slot(caller: IHookFunctions): 'production' | 'test' {
  return caller.getMode() === 'manual' ? 'test' : 'production';
}

function owner(caller: IHookFunctions): string {
  return `${caller.getInstanceId()}/${caller.getWorkflow().id}/${caller.getNode().id}`;
}

function keptOf(caller: IHookFunctions): Kept | undefined {
  const kept = caller.getWorkflowStaticData('node')[slot(caller)] as Kept | undefined;
  return kept?.owner === owner(caller) ? kept : undefined;
}

async function arrivedAt(caller: IWebhookFunctions): Promise<Arrived> {
  const request = caller.getRequestObject();
  if (request.rawBody === undefined) await request.readRawBody();
  return { body: request.rawBody, headers: caller.getHeaderData() };
}

/** Uses the team's public keys: n8n stores no secret, and any API key may read them. */
async function isGenuine(caller: IWebhookFunctions, arrived: Arrived): Promise<boolean> {
  const data = caller.getWorkflowStaticData('node');
  const nowMs = Date.now();
  if (isSigned(arrived, (data.keys ?? []) as string[], nowMs)) return true;
  // Keys may have been added since.
  if (nowMs < Number(data.keysAt ?? 0) + KEYS_AGAIN_MS) return false;
  data.keysAt = nowMs;
  data.keys = await signingKeys(caller);
  return isSigned(arrived, data.keys as string[], nowMs);
}

/** A test is sent to every webhook, and a webhook may be older than the settings of its node. */
function isAskedFor(caller: IWebhookFunctions, event: IDataObject): boolean {
  const events = caller.getNodeParameter('events', []) as string[];
  const workflowId = String(caller.getNodeParameter('workflowId', '') ?? '');
  return events.includes(String(event.type)) && (workflowId === '' || event.workflowId === workflowId);
}

function respond(caller: IWebhookFunctions, status: number, error: string): IWebhookResponseData {
  caller.getResponseObject().status(status).json({ error });
  return { noWebhookResponse: true };
}
