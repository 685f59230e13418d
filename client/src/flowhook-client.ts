/** The public interface of the package: names exported here stay the same. */
export type { AuditLine, AuditOptions } from './audit.ts';
export {
  Conflict,
  FlowhookError,
  Forbidden,
  NotFound,
  RateLimited,
  TimedOut,
  Unauthorized,
  Unavailable,
} from './errors.ts';
export type { FlowhookEvent } from './event.ts';
export type { EventKind } from './events.ts';
export { Flowhook, type FlowhookOptions } from './flowhook.ts';
export type { InspectedRequest, Inspector, InspectorAnswer } from './inspectors.ts';
export type { FailureReason, Job, JobCounts, JobOrigin, JobState, LogLine } from './jobs.ts';
export type { Key, MadeKey, Me, Scope } from './keys.ts';
export type { Page, Pages, WholeList } from './pages.ts';
export type { PushedBytes } from './push-body.ts';
export type { News } from './stream.ts';
export type { System, SystemChecks, SystemFinding, SystemSetting } from './system.ts';
export type { Call, CallOptions, KeyedOptions } from './transport.ts';
export type { Usage, UsageBucket } from './usage.ts';
export { NotVerified, verifyWebhook } from './verify-webhook.ts';
export type {
  Delivery,
  DeliveryDetail,
  DeliveryState,
  Replay,
  ReplayPlan,
  ReplaySelection,
  Webhook,
  WebhookDetail,
  WebhookSettings,
} from './webhooks.ts';
export type {
  Change,
  DataOptions,
  DataRecord,
  Definition,
  Version,
  Workflow,
  WorkflowDefinition,
} from './workflows.ts';
