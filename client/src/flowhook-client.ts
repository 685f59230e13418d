/** The door of the package: what stands here is public and keeps its name. */
export {
  Conflict,
  FlowhookError,
  NotFound,
  RateLimited,
  TimedOut,
  Unauthorized,
  Unavailable,
} from './errors.ts';
export type { FlowhookEvent } from './event.ts';
export type { EventKind } from './events.ts';
export { Flowhook, type FlowhookOptions } from './flowhook.ts';
export type { Job, JobState, LogLine } from './jobs.ts';
export type { Key, MadeKey, Me, Scope } from './keys.ts';
export type { Page, Pages } from './pages.ts';
export type { News } from './stream.ts';
export type { CallOptions } from './transport.ts';
export { NotVerified, verifyWebhook } from './verify-webhook.ts';
export type { Delivery, DeliveryDetail, Webhook, WebhookDetail, WebhookSettings } from './webhooks.ts';
export type { Change, DataRecord, Version, Workflow } from './workflows.ts';
