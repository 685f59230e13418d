/** The client's types are those of the service: what differs does not compile. */
import { test } from 'node:test';
import type { EventType } from '../../src/model/event.ts';
import type { shownAuditLine } from '../../src/resources/audit-line.ts';
import type {
  ShownDeliveryDetail,
  shownDelivery,
  shownPlan,
  shownReplay,
} from '../../src/resources/delivery.ts';
import type { ShownInspected, ShownInspector } from '../../src/resources/inspector.ts';
import type { shownJob, shownLine } from '../../src/resources/job.ts';
import type { shownKey } from '../../src/resources/key.ts';
import type { ShownChecks, ShownSystem } from '../../src/resources/system.ts';
import type { shownWebhook } from '../../src/resources/webhook.ts';
import type { shownWorkflow } from '../../src/resources/workflow.ts';
import type {
  AuditLine,
  DataOptions,
  Delivery,
  DeliveryDetail,
  Flowhook,
  FlowhookEvent,
  InspectedRequest,
  Inspector,
  InspectorAnswer,
  Job,
  JobCounts,
  Key,
  LogLine,
  PushedBytes,
  Replay,
  ReplayPlan,
  System,
  SystemChecks,
  WebhookDetail,
  Workflow,
} from '../src/flowhook-client.ts';

/** Compiles only when each can stand for the other. */
function same<Ours, Theirs>(
  ..._: [Ours] extends [Theirs] ? ([Theirs] extends [Ours] ? [] : [never]) : [never]
) {}

test('jobs, workflows, webhooks and deliveries have the shapes that the service gives them', () => {
  same<ReturnType<typeof shownJob>, Job>();
  // The client takes kinds of sources that it has never heard of.
  same<
    Omit<Awaited<ReturnType<typeof shownWorkflow>>, 'source' | 'schedule'>,
    Omit<Workflow, 'source' | 'schedule'>
  >();
  same<ReturnType<typeof shownLine>, LogLine>();
  same<ReturnType<typeof shownKey>, Key>();
  same<ReturnType<typeof shownAuditLine>, AuditLine>();
  same<Awaited<ReturnType<typeof shownWebhook>>, WebhookDetail>();
  same<ReturnType<typeof shownDelivery>, Delivery>();
  same<Omit<ShownDeliveryDetail, 'event'>, Omit<DeliveryDetail, 'event'>>();
  same<ReturnType<typeof shownReplay>, Replay>();
  same<ReturnType<typeof shownPlan>, ReplayPlan>();
  same<ShownSystem, System>();
  same<ShownChecks, SystemChecks>();
  same<ShownInspector, Inspector>();
  same<ShownInspected, InspectedRequest>();
  same<EventType, FlowhookEvent['type']>();
});

test('what methods take and return can be named', () => {
  same<Parameters<Flowhook['workflows']['readAll']>[1], DataOptions | undefined>();
  same<Extract<Parameters<Flowhook['workflows']['push']>[1], { contentType: string }>, PushedBytes>();
  same<Awaited<ReturnType<Flowhook['jobs']['counts']>>, JobCounts>();
  same<Parameters<Flowhook['inspectors']['create']>[0], InspectorAnswer | undefined>();
});
