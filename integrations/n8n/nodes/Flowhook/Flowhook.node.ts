/** Queues and runs workflows of Flowhook, follows jobs, reads and pushes records, and handles webhooks. */
import type {
  IExecuteFunctions,
  ILoadOptionsFunctions,
  INodeExecutionData,
  INodePropertyOptions,
  INodeType,
  INodeTypeDescription,
} from 'n8n-workflow';
import { NodeConnectionTypes, NodeOperationError } from 'n8n-workflow';
import { listWorkflowOptions } from '../../api/workflow-list.ts';
import { ACTS } from './actions/act.ts';
import { pushesItems, pushItems } from './actions/push.ts';
import { dataFields } from './fields/data.ts';
import { jobFields } from './fields/job.ts';
import { webhookFields } from './fields/webhook.ts';
import { workflowFields } from './fields/workflow.ts';

export class Flowhook implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Flowhook',
    name: 'flowhook',
    icon: { light: 'file:../../icons/flowhook.svg', dark: 'file:../../icons/flowhook.dark.svg' },
    group: ['transform'],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: 'Queue and run workflows of Flowhook, read and push their records',
    defaults: { name: 'Flowhook' },
    usableAsTool: true,
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: 'flowhookApi', required: true }],
    properties: [
      {
        displayName: 'Resource',
        name: 'resource',
        type: 'options',
        noDataExpression: true,
        default: 'workflow',
        options: [
          { name: 'Job', value: 'job' },
          { name: 'Record', value: 'data' },
          { name: 'Webhook', value: 'webhook' },
          { name: 'Workflow', value: 'workflow' },
        ],
      },
      ...dataFields,
      ...jobFields,
      ...webhookFields,
      ...workflowFields,
    ],
  };

  methods = {
    loadOptions: {
      async getWorkflows(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
        return listWorkflowOptions(this);
      },
      async getAllOrOneWorkflow(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
        return [{ name: 'All Workflows', value: '' }, ...(await listWorkflowOptions(this))];
      },
    },
  };

  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const items = this.getInputData();
    const together = pushesItems(this);
    const out: INodeExecutionData[] = [];
    for (let itemIndex = 0; itemIndex < (together ? 1 : items.length); itemIndex++) {
      const pairedItem = together ? items.map((_, item) => ({ item })) : { item: itemIndex };
      try {
        const resource = this.getNodeParameter('resource', itemIndex);
        const operation = this.getNodeParameter('operation', itemIndex);
        const act = ACTS[`${resource}.${operation}`];
        if (act === undefined) {
          throw new NodeOperationError(
            this.getNode(),
            `There is no operation "${operation}" of "${resource}"`,
          );
        }
        const found = together ? await pushItems(this) : await act(this, itemIndex);
        for (const json of found) out.push({ json, pairedItem });
      } catch (error) {
        // The errors thrown above are already errors of n8n, with the item and the next step.
        // eslint-disable-next-line @n8n/community-nodes/require-node-api-error
        if (!this.continueOnFail()) throw error;
        out.push({ json: { error: (error as Error).message }, pairedItem });
      }
    }
    return [out];
  }
}
