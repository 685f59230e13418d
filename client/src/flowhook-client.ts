/** The public interface of the package. These names are stable. */
export type { AuditOptions } from './audit.ts';
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
export { Flowhook, type FlowhookOptions } from './flowhook.ts';
export type { FailureReason, JobOrigin, JobState } from './jobs.ts';
export type { Scope } from './keys.ts';
export type { Page, Pages, WholeList } from './pages.ts';
export type { PushedBytes } from './push-body.ts';
export type { QuarantineFilter, QuarantineSelection } from './quarantine.ts';
export type {
  AuditLine,
  DataRecord,
  Decision,
  Delivery,
  DeliveryDetail,
  EventKind,
  Feed,
  FeedChanges,
  FlowhookEvent,
  InspectedRequest,
  Inspector,
  InspectorAnswer,
  Job,
  JobCounts,
  JobFinding,
  Key,
  LogLine,
  MadeKey,
  Me,
  NewFeed,
  NewWebhook,
  Profile,
  ProfileField,
  QuarantineAccepted,
  QuarantineDropped,
  QuarantinedRecord,
  QuarantinedRecordBeside,
  RecordChange,
  Replay,
  ReplayPlan,
  Retry,
  RetryPlan,
  SearchResult,
  SearchResultHit,
  System,
  SystemChecks,
  SystemFinding,
  SystemSetting,
  TryWebhookRequest,
  TryWebhookResult,
  Usage,
  UsageBucket,
  Version,
  Webhook,
  WebhookChanges,
  WebhookDetail,
  WebhookSettings,
  Workflow,
} from './resources.ts';
export type { News } from './stream.ts';
export type { Call, CallOptions, KeyedOptions } from './transport.ts';
export { NotVerified, verifyWebhook } from './verify-webhook.ts';
export type {
  CreatedWebhook,
  DecisionState,
  DeliveryFilter,
  DeliveryState,
  ReplaySelection,
  RetrySelection,
} from './webhooks.ts';
export type { Change, ChangesOptions, DataOptions, Definition, WorkflowDefinition } from './workflows.ts';
