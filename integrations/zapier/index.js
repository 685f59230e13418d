/** The app as Zapier loads it: authentication, triggers, searches and actions. */
import { version as platformVersion } from 'zapier-platform-core';
import packageJson from './package.json' with { type: 'json' };
import { authentication } from './src/authentication.js';
import { EVENTS } from './src/events.js';
import { findWorkflow } from './src/find-workflow.js';
import { pushRecords } from './src/push-records.js';
import { queueJob } from './src/queue-job.js';
import { runWorkflow } from './src/run-workflow.js';
import { eventTrigger } from './src/trigger.js';
import { pushWorkflowList, workflowList } from './src/workflow-lists.js';

const byKey = (items) => Object.fromEntries(items.map((item) => [item.key, item]));

export default {
  version: packageJson.version,
  platformVersion,
  authentication,
  triggers: byKey([...EVENTS.map(eventTrigger), workflowList, pushWorkflowList]),
  searches: byKey([findWorkflow]),
  creates: byKey([queueJob, runWorkflow, pushRecords]),
};
