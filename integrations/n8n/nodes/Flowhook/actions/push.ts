/** Pushes records: all input items in one push, or a list written in the node. */
import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';
import { NodeOperationError } from 'n8n-workflow';
import { ask } from '../../../api/ask.ts';

/** The response comes when everything is published, and a push waits for the previous one. */
const TIMEOUT_MS = 15 * 60_000;

/** Whether the node pushes its items together, in one push. */
export function pushesItems(caller: IExecuteFunctions): boolean {
  return (
    caller.getNodeParameter('resource', 0) === 'data' &&
    caller.getNodeParameter('operation', 0) === 'push' &&
    caller.getNodeParameter('recordsFrom', 0) === 'items'
  );
}

export function pushItems(caller: IExecuteFunctions): Promise<IDataObject[]> {
  return push(
    caller,
    0,
    caller.getInputData().map((item) => item.json),
  );
}

export function pushJson(caller: IExecuteFunctions, itemIndex: number): Promise<IDataObject[]> {
  const entered = caller.getNodeParameter('records', itemIndex);
  let records: unknown = entered;
  if (typeof entered === 'string') {
    try {
      records = JSON.parse(entered);
    } catch (error) {
      throw new NodeOperationError(caller.getNode(), `"Records" is not JSON: ${(error as Error).message}`, {
        itemIndex,
      });
    }
  }
  if (!Array.isArray(records)) {
    throw new NodeOperationError(caller.getNode(), '"Records" must be a list of objects: [{ "id": "1" }]', {
      itemIndex,
    });
  }
  return push(caller, itemIndex, records);
}

async function push(
  caller: IExecuteFunctions,
  itemIndex: number,
  records: unknown[],
): Promise<IDataObject[]> {
  const { mode, idempotencyKey = '' } = caller.getNodeParameter('options', itemIndex, {}) as IDataObject;
  const workflowId = String(caller.getNodeParameter('workflowId', itemIndex) ?? '').trim();
  const { body } = await ask(caller, {
    method: 'POST',
    path: `/v1/workflows/${encodeURIComponent(workflowId)}/push`,
    query: mode === undefined ? {} : { mode },
    headers: idempotencyKey === '' ? {} : { 'idempotency-key': idempotencyKey },
    body: records,
    timeoutMs: TIMEOUT_MS,
    itemIndex,
  });
  return [body];
}
