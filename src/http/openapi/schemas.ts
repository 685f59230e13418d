/**
 * `components.schemas` of the OpenAPI document: the JSON Schemas that have names, each from beside the code that makes
 * what it describes.
 */
import { webhookSchema } from '../contract/list-webhooks.ts';
import { changeSchema } from '../extensions/changes.ts';
import { auditLineSchema } from '../extensions/shown-audit-line.ts';
import {
  deliveryDetailSchema,
  deliverySchema,
  replayPlanSchema,
  replaySchema,
} from '../extensions/shown-delivery.ts';
import { inspectedRequestSchema, inspectorSchema } from '../extensions/shown-inspector.ts';
import { jobSchema } from '../extensions/shown-job.ts';
import { keySchema } from '../extensions/shown-key.ts';
import { logLineSchema } from '../extensions/shown-log-line.ts';
import { webhookDetailSchema } from '../extensions/shown-webhook.ts';
import { workflowSchema } from '../extensions/shown-workflow.ts';
import { systemSchema } from '../extensions/system.ts';
import { systemChecksSchema } from '../extensions/system-checks.ts';
import { versionSchema } from '../extensions/versions.ts';
import { problemSchema } from '../problem.ts';
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
