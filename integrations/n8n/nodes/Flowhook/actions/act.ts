/** The operations: each takes one item and returns objects. */
import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';
import { ask } from '../../../api/ask.ts';
import { queueJob, readJob, refuseUnfinished, type WhenBusy, waitForEnd } from '../../../api/jobs.ts';
import { readPages } from '../../../api/pages.ts';
import { pushJson } from './push.ts';

type Act = (caller: IExecuteFunctions, itemIndex: number) => Promise<IDataObject[]>;

/** By `<resource>.<operation>`. */
export const ACTS: Readonly<Record<string, Act>> = {
  'workflow.getAll': (caller, itemIndex) => {
    return readAll(caller, itemIndex, { path: '/v1/workflows', under: 'workflows' });
  },
  async 'workflow.queue'(caller, itemIndex) {
    const whenBusy = caller.getNodeParameter('whenBusy', itemIndex) as WhenBusy;
    const untilMs = whenBusy === 'wait' ? deadline(caller, 'roomSeconds', itemIndex) : 0;
    const { job, queued } = await queueJob(caller, { ...wantedJob(caller, itemIndex), untilMs });
    return [{ ...job, queued }];
  },
  async 'workflow.run'(caller, itemIndex) {
    const untilMs = deadline(caller, 'waitSeconds', itemIndex);
    const { job, queued } = await queueJob(caller, { ...wantedJob(caller, itemIndex), untilMs });
    const ended = await ending(caller, job.id, itemIndex, untilMs);
    return [{ ...ended, queued }];
  },
  async 'job.get'(caller, itemIndex) {
    return [await readJob(caller, text(caller, 'jobId', itemIndex), itemIndex)];
  },
  async 'job.wait'(caller, itemIndex) {
    const untilMs = deadline(caller, 'waitSeconds', itemIndex);
    return [await ending(caller, text(caller, 'jobId', itemIndex), itemIndex, untilMs)];
  },
  async 'job.cancel'(caller, itemIndex) {
    const path = `/v1/jobs/${encodeURIComponent(text(caller, 'jobId', itemIndex))}/cancel`;
    const { body } = await ask<{ job: IDataObject }>(caller, { method: 'POST', path, itemIndex });
    return [body.job];
  },
  'data.getAll': (caller, itemIndex) => {
    const { since, fields, q, version } = caller.getNodeParameter('options', itemIndex, {}) as IDataObject;
    return readAll(caller, itemIndex, {
      path: `/v1/workflows/${encodeURIComponent(text(caller, 'workflowId', itemIndex))}/data`,
      query: { ...given({ since, version }), ...(fields ? { fields } : {}), ...(q ? { q } : {}) },
    });
  },
  'data.push': pushJson,
  'webhook.getAll': (caller, itemIndex) => {
    const workflowId = text(caller, 'webhookWorkflowId', itemIndex);
    return readAll(caller, itemIndex, {
      path: '/v1/integrations/webhooks',
      query: workflowId === '' ? {} : { workflowId },
      under: 'webhooks',
    });
  },
  async 'webhook.subscribe'(caller, itemIndex) {
    const workflowId = text(caller, 'webhookWorkflowId', itemIndex);
    const webhookUrl = text(caller, 'webhookUrl', itemIndex);
    const events = caller.getNodeParameter('events', itemIndex) as string[];
    const { headers, body } = await ask<{ message: string }>(caller, {
      method: 'POST',
      ...(workflowId === ''
        ? { path: '/v1/integrations/webhooks', body: { webhookUrl, events } }
        : { path: '/v1/integrations/webhooks/subscribe', body: { workflowId, webhookUrl, events } }),
      itemIndex,
    });
    return [{ id: headers['x-webhook-id'] ?? null, message: body.message }];
  },
  async 'webhook.unsubscribe'(caller, itemIndex) {
    const id = text(caller, 'webhookId', itemIndex);
    const path = `/v1/integrations/webhooks/unsubscribe/${encodeURIComponent(id)}`;
    const { body } = await ask<{ message: string }>(caller, { method: 'DELETE', path, itemIndex });
    return [{ id, message: body.message }];
  },
};

function wantedJob(caller: IExecuteFunctions, itemIndex: number) {
  const { idempotencyKey = '' } = caller.getNodeParameter('options', itemIndex, {}) as IDataObject;
  return {
    workflowId: text(caller, 'workflowId', itemIndex),
    whenBusy: caller.getNodeParameter('whenBusy', itemIndex) as WhenBusy,
    idempotencyKey: String(idempotencyKey),
    itemIndex,
  };
}

async function ending(caller: IExecuteFunctions, jobId: string, itemIndex: number, untilMs: number) {
  const job = await waitForEnd(caller, jobId, { itemIndex, untilMs });
  if (caller.getNodeParameter('failWithJob', itemIndex) === true) refuseUnfinished(caller, job, itemIndex);
  return job;
}

async function readAll(
  caller: IExecuteFunctions,
  itemIndex: number,
  list: { path: string; query?: IDataObject; under?: string },
): Promise<IDataObject[]> {
  const isAll = caller.getNodeParameter('returnAll', itemIndex) === true;
  const most = isAll ? Number.POSITIVE_INFINITY : Number(caller.getNodeParameter('limit', itemIndex));
  const items: IDataObject[] = [];
  for await (const item of readPages(caller, { ...list, most, itemIndex })) items.push(item);
  return items;
}

function deadline(caller: IExecuteFunctions, parameter: string, itemIndex: number): number {
  return Date.now() + Number(caller.getNodeParameter(parameter, itemIndex)) * 1_000;
}

function text(caller: IExecuteFunctions, parameter: string, itemIndex: number): string {
  return String(caller.getNodeParameter(parameter, itemIndex) ?? '').trim();
}

/** The options that were set. 0 is a valid version. */
function given(options: IDataObject): IDataObject {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
