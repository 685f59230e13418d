/** The named schemas in `components.schemas` of the OpenAPI document, in order. */
import { auditLineResource } from '../../resources/audit-line.ts';
import { decisionResource } from '../../resources/decision.ts';
import {
  deliveryDetailResource,
  deliveryResource,
  replayPlanResource,
  replayResource,
} from '../../resources/delivery.ts';
import { errorResource, messageResource, problemResource } from '../../resources/error.ts';
import { eventResource, eventResources } from '../../resources/event.ts';
import { feedResource } from '../../resources/feed.ts';
import { inspectedRequestResource, inspectorResource } from '../../resources/inspector.ts';
import { jobResource, logLineResource } from '../../resources/job.ts';
import { keyResource } from '../../resources/key.ts';
import { profileResource } from '../../resources/profile.ts';
import { quarantinedBesideResource, quarantinedResource } from '../../resources/quarantine.ts';
import { retryPlanResource, retryResource } from '../../resources/retry.ts';
import { systemChecksResource, systemResource } from '../../resources/system.ts';
import { signingKeyResource, webhookDetailResource, webhookResource } from '../../resources/webhook.ts';
import {
  changeResource,
  recordChangeResource,
  recordResource,
  versionResource,
  workflowResource,
} from '../../resources/workflow.ts';
import type { JsonSchema } from '../../std/shape.ts';

export const schemas: Readonly<Record<string, JsonSchema>> = Object.fromEntries(
  [
    errorResource,
    problemResource,
    messageResource,
    recordResource,
    webhookResource,
    webhookDetailResource,
    decisionResource,
    deliveryResource,
    deliveryDetailResource,
    replayResource,
    replayPlanResource,
    retryResource,
    retryPlanResource,
    feedResource,
    quarantinedResource,
    quarantinedBesideResource,
    inspectorResource,
    inspectedRequestResource,
    systemChecksResource,
    systemResource,
    changeResource,
    profileResource,
    recordChangeResource,
    versionResource,
    jobResource,
    auditLineResource,
    keyResource,
    signingKeyResource,
    logLineResource,
    workflowResource,
    // Events come last, so that parts that they share with the schemas above are named after the schemas above.
    eventResource,
    ...eventResources,
  ].map(({ name, definition }) => [name, definition]),
);
