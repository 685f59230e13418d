/**
 * `components.schemas` of the OpenAPI document: the JSON Schemas that have names, each from beside the code that makes
 * what it describes.
 */
import { auditLineSchema } from '../../resources/audit-line.ts';
import {
  deliveryDetailSchema,
  deliverySchema,
  replayPlanSchema,
  replaySchema,
} from '../../resources/delivery.ts';
import { inspectedRequestSchema, inspectorSchema } from '../../resources/inspector.ts';
import { jobSchema } from '../../resources/job.ts';
import { keySchema } from '../../resources/key.ts';
import { logLineSchema } from '../../resources/log-line.ts';
import { webhookDetailSchema } from '../../resources/webhook.ts';
import { workflowSchema } from '../../resources/workflow.ts';
import { changeSchema } from '../routes/changes.ts';
import { webhookSchema } from '../routes/list-webhooks.ts';
import { systemSchema } from '../routes/system.ts';
import { systemChecksSchema } from '../routes/system-checks.ts';
import { versionSchema } from '../routes/versions.ts';
import { problemSchema } from '../server/problem.ts';
import { eventSchemas } from './describe-events.ts';

export const schemas = {
  Error: {
    type: 'object',
    required: ['error'],
    properties: { error: { type: 'string', description: 'What is wrong, and what to do next' } },
    examples: [{ error: 'No workflow found' }],
    additionalProperties: false,
  },
  Problem: problemSchema,
  Message: {
    type: 'object',
    required: ['message'],
    properties: { message: { type: 'string' } },
    examples: [{ message: 'Job queued' }],
    additionalProperties: false,
  },
  Record: {
    type: 'object',
    description: 'A data record. A workflow may add other fields.',
    properties: {
      id: { type: 'string', description: 'Record identifier' },
      name: { type: 'string' },
      email: { type: 'string' },
    },
    examples: [{ id: '17', name: 'Ada Lovelace', email: 'ada@example.com' }],
    additionalProperties: true,
  },
  Webhook: webhookSchema,
  WebhookDetail: webhookDetailSchema,
  Delivery: deliverySchema,
  DeliveryDetail: deliveryDetailSchema,
  Replay: replaySchema,
  ReplayPlan: replayPlanSchema,
  Inspector: inspectorSchema,
  InspectedRequest: inspectedRequestSchema,
  SystemChecks: systemChecksSchema,
  System: systemSchema,
  Change: changeSchema,
  Version: versionSchema,
  Job: jobSchema,
  AuditLine: auditLineSchema,
  Key: keySchema,
  LogLine: logLineSchema,
  Workflow: workflowSchema,
  // Last: parts that they share with those above are named after those.
  ...eventSchemas,
};
