/**
 * Types of the API, generated from its OpenAPI document by client/write-resources.ts. Times are ISO 8601 in UTC with
 * milliseconds.
 */

/** Data record. A workflow may add further fields. */
export interface DataRecord {
  /** Record ID, unique within the workflow. */
  id: string;
  name?: string;
  email?: string;
  [field: string]: unknown;
}

export interface Webhook {
  /** Webhook ID. */
  id: string;
  createdAt: string;
  /** Callback URL. */
  url: string;
  /** Names of the events that the webhook is subscribed to. */
  events: string[];
}

export interface WebhookDetailDigest {
  /** Length of a digest, such as `1h`, from its first match. */
  every?: string;
  /** Time of day when digests are sent, such as `08:00`. */
  at?: string;
  /** IANA name of the time zone of `at`. */
  timeZone?: string;
}

export interface WebhookDetailFilterMistake {
  at: string;
  eventId: string;
  /** ID of the record. `null` if the filter reads no records. */
  recordId: string | null;
  message: string;
}

export interface WebhookDetailSettings {
  /** `true` to send one delivery at a time, in the order of the events. */
  ordered: boolean;
  /** Maximum number of requests per second. `null` if unlimited. */
  ratePerSecond: number | null;
  /** Time limit of one attempt, in milliseconds. */
  timeoutMs: number;
  /** Names of the custom headers; their values are never shown. `null` if the headers were encrypted with another encryption key and must be set again. */
  headers: string[] | null;
}

export interface WebhookDetailBreaker {
  /** `closed`: due deliveries are sent, unless the endpoint asked for a pause (`Retry-After`); `open`: only an occasional probe is sent; `half_open`: a few requests test whether the endpoint has recovered. */
  state: 'closed' | 'open' | 'half_open';
  /** Time since which deliveries have been held back. `null` if they are not. */
  since: string | null;
  /** Time of the next attempt to a failing endpoint. A time in the past means as soon as possible. `null` if the endpoint is not failing, no delivery is waiting, or the webhook is paused. */
  nextAttemptAt: string | null;
  /** Human-readable reason why deliveries are held back. `null` if no deliveries are held back. */
  reason: string | null;
}

export interface WebhookDetail {
  id: string;
  /** ID of the workflow. `null` if the webhook receives the events of every workflow. */
  workflowId: string | null;
  createdAt: string;
  /** Callback URL. For a key without the scope `webhooks`, `***` replaces the user, the values of the query, the fragment, and the name before the @ of a mail address, and the path of the URL of a chat is left out. */
  url: string;
  events: string[];
  /** Name for people. `null` if there is none. */
  name: string | null;
  /** Purpose of the webhook, for people. `null` if there is none. */
  description: string | null;
  /** Words by which the list is filtered. */
  labels: string[];
  /** Expression that decides what is sent (Common Expression Language). `null` if all is sent. */
  filter: string | null;
  /** Form of the body. */
  format: 'standard' | 'cloudevents' | 'template' | 'slack' | 'discord' | 'teams' | 'mail';
  /** JSON that is sent with the format `template`, before its expressions are replaced. `null` if none; `***` for a key without the scope `webhooks`. */
  template: unknown;
  /** Whether the first version of a workflow is sent. */
  firstVersion: 'send' | 'skip';
  /** Time for which nothing more is sent about a record that was sent, such as `6h`. `null` if there is no limit. */
  cooldown: string | null;
  /** Time at which everything that matches is sent in one message: `every` or `at`. `null` if it is sent immediately. */
  digest: WebhookDetailDigest | null;
  /** IANA name of the zone of times in messages for people. `null` for the zone of the digest, or UTC. */
  timeZone: string | null;
  /** Last time that the filter or the template could not be evaluated, which counts as no match. `null` if it always could. */
  filterMistake: WebhookDetailFilterMistake | null;
  state: 'active' | 'paused';
  settings: WebhookDetailSettings;
  /** Time when the webhook was paused. `null` if it is active. */
  pausedAt: string | null;
  /** Reason for the pause. `null` if the webhook is active. */
  pausedReason: string | null;
  /** Time since which every attempt has failed. `null` if the last one succeeded, or there was none. */
  failingSince: string | null;
  /** Circuit breaker of the endpoint. */
  breaker: WebhookDetailBreaker;
  /** Time of the last successful delivery, accurate to one minute. `null` if there is none. */
  lastSuccessAt: string | null;
  /** Time when the recipient confirmed the address. `null` if that is pending, or the webhook sends no mail. */
  verifiedAt: string | null;
}

export interface Decision {
  webhookId: string;
  eventId: string;
  eventType: 'workflow_queued' | 'workflow_started' | 'workflow_data_change' | 'workflow_schema_changed' | 'workflow_expectation_failed' | 'workflow_finished' | 'workflow_failed' | 'workflow_canceled' | 'workflow_stale' | 'workflow_recovered' | 'webhook_test' | 'webhook_paused' | 'webhook_failing' | 'webhook_digest';
  /** `sequence` of the event. */
  sequence: number;
  /** ID of the workflow. `null` if the event is about no workflow. */
  workflowId: string | null;
  /** `pending`: not decided yet; `sent`: there is a delivery; `gathered`: what matches is in a digest, which is sent later; `filtered`: nothing is sent, and `reason` says why. */
  state: 'pending' | 'sent' | 'gathered' | 'filtered';
  /** Number of differences that match. `null` while the decision is pending, and if the rule reads no records. */
  matched: number | null;
  /** Number of differences of the event. `null` while the decision is pending, and if the rule reads no records. */
  examined: number | null;
  /** Human-readable reason. `null` unless nothing is sent immediately, or not all was examined. */
  reason: string | null;
  /** ID of the delivery. `null` unless the event is sent. */
  deliveryId: string | null;
  /** The filter that was in force when the event happened. `null` if there was none. */
  filter: string | null;
  createdAt: string;
}

export interface DeliveryLastAttempt {
  at: string;
  outcome: 'ok' | 'http' | 'timeout' | 'dns' | 'connect' | 'tls' | 'blocked' | 'protocol' | 'smtp';
  /** HTTP status of the response. `null` if there was no response. */
  status: number | null;
  /** Human-readable outcome. */
  message: string;
}

export interface Delivery {
  id: string;
  webhookId: string;
  /** Name of the webhook. `null` if it has none. */
  webhookName: string | null;
  /** URL of the webhook. `null` if it was removed long ago. */
  webhookUrl: string | null;
  /** Workflow of the event. `null` if the event is about the team. */
  workflowId: string | null;
  eventId: string;
  eventType: 'workflow_queued' | 'workflow_started' | 'workflow_data_change' | 'workflow_schema_changed' | 'workflow_expectation_failed' | 'workflow_finished' | 'workflow_failed' | 'workflow_canceled' | 'workflow_stale' | 'workflow_recovered' | 'webhook_test' | 'webhook_paused' | 'webhook_failing' | 'webhook_digest';
  origin: 'event' | 'test' | 'replay';
  state: 'waiting' | 'delivered' | 'dead' | 'canceled';
  /** Number of attempts made so far. */
  attempt: number;
  createdAt: string;
  /** Time of the next attempt (ISO 8601). `null` unless `state` is `waiting`. */
  nextAttemptAt: string | null;
  /** Most recent attempt. `null` if there is none, or it is no longer stored. */
  lastAttempt: DeliveryLastAttempt | null;
}

export interface DeliveryDetailAttemptRequest {
  url: string;
  headers: Record<string, string>;
}

export interface DeliveryDetailAttemptResponse {
  headers: Record<string, string>;
  /** First 2 KiB of the response body. `null` if there is none. */
  body: string | null;
}

export interface DeliveryDetailAttemptTiming {
  queuedMs: number;
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  firstByteMs: number | null;
}

export interface DeliveryDetailAttempt {
  /** Attempt number, counting from 1. */
  number: number;
  startedAt: string;
  durationMs: number;
  outcome: 'ok' | 'http' | 'timeout' | 'dns' | 'connect' | 'tls' | 'blocked' | 'protocol' | 'smtp';
  /** HTTP status of the response. `null` if there was no response. */
  status: number | null;
  /** Human-readable outcome. */
  message: string;
  /** Request as sent; `***` replaces credentials and the values of custom headers. */
  request: DeliveryDetailAttemptRequest | null;
  /** Response of the endpoint. `null` if there was none. */
  response: DeliveryDetailAttemptResponse | null;
  /** IP address of the endpoint. `null` if no connection was made. */
  remoteAddress: string | null;
  /** Timings in milliseconds. `queuedMs`: wait before the attempt; all others: from the start of the attempt to the end of the step, `null` if the step was not reached or not needed. */
  timing: DeliveryDetailAttemptTiming | null;
}

export interface DeliveryDetail {
  id: string;
  webhookId: string;
  /** Name of the webhook. `null` if it has none. */
  webhookName: string | null;
  /** URL of the webhook. `null` if it was removed long ago. */
  webhookUrl: string | null;
  /** Workflow of the event. `null` if the event is about the team. */
  workflowId: string | null;
  eventId: string;
  eventType: 'workflow_queued' | 'workflow_started' | 'workflow_data_change' | 'workflow_schema_changed' | 'workflow_expectation_failed' | 'workflow_finished' | 'workflow_failed' | 'workflow_canceled' | 'workflow_stale' | 'workflow_recovered' | 'webhook_test' | 'webhook_paused' | 'webhook_failing' | 'webhook_digest';
  origin: 'event' | 'test' | 'replay';
  state: 'waiting' | 'delivered' | 'dead' | 'canceled';
  /** Number of attempts made so far. */
  attempt: number;
  createdAt: string;
  /** Time of the next attempt (ISO 8601). `null` unless `state` is `waiting`. */
  nextAttemptAt: string | null;
  /** Most recent attempt. `null` if there is none, or it is no longer stored. */
  lastAttempt: DeliveryLastAttempt | null;
  /** Value of the header `webhook-id`: ID of the event, or of a message about ended cooldowns. */
  messageId: string;
  /** Event that the delivery is about. */
  event: FlowhookEvent;
  /** Body that is sent, to the byte. A rule of the webhook may select and shape it. */
  body: string;
  /** Stored attempts, oldest first. Attempts are deleted after 14 days (`FLOWHOOK_KEEP_ATTEMPTS_DAYS`). */
  attempts: DeliveryDetailAttempt[];
}

export interface ReplayOutcomeFailure {
  /** HTTP status of the response. `null` if there was no response. */
  status: number | null;
  /** Human-readable outcome. */
  message: string;
  /** Number of failed deliveries with this outcome. */
  count: number;
  /** Number of these deliveries that will be retried automatically. */
  retried: number;
}

export interface ReplayOutcome {
  /** Successful deliveries. */
  arrived: number;
  /** Deliveries not attempted yet: queued, or held back with their webhook. */
  underWay: number;
  /** Deliveries whose last attempt failed, whether or not they will be retried. */
  failed: number;
  /** Deliveries canceled because the webhook was unsubscribed. */
  canceled: number;
  /** Deliveries that a later replay has sent again; only the later replay counts their results. */
  superseded: number;
  /** Failed deliveries grouped by outcome, most frequent first (at most 20 groups). */
  failures: ReplayOutcomeFailure[];
  /** `false` if the replay has 100,000 deliveries or more: only the first 100,000 are counted. */
  isComplete: boolean;
}

export interface Replay {
  id: string;
  webhookId: string;
  /** `running`: deliveries are still being queued; `done`: all are queued, and `outcome` says how many arrived. */
  state: 'running' | 'done';
  /** States of the selected deliveries. */
  states: ('waiting' | 'delivered' | 'dead' | 'canceled')[];
  /** Start of the period, inclusive. */
  since: string;
  /** End of the period, inclusive. */
  until: string;
  /** Number of deliveries queued so far: new ones, and waiting ones that became due immediately. */
  made: number;
  /** Results of the deliveries queued so far. */
  outcome: ReplayOutcome;
  createdAt: string;
}

export interface ReplayPlanByState {
  waiting: number;
  delivered: number;
  dead: number;
  canceled: number;
}

export interface ReplayPlan {
  /** Start of the period, inclusive. */
  since: string;
  /** End of the period, inclusive. */
  until: string;
  /** States of the selected deliveries. */
  states: ('waiting' | 'delivered' | 'dead' | 'canceled')[];
  /** Number of events that the replay would send. */
  count: number;
  /** Number of events in each delivery state, including states that `states` does not select. */
  byState: ReplayPlanByState;
  /** `false` if 50,000 deliveries or more match: the counts are then lower bounds. */
  isComplete: boolean;
}

export interface Retry {
  id: string;
  /** `running`: deliveries are still being queued; `done`: all are queued, and the counts say how many arrived. */
  state: 'running' | 'done';
  /** Number of deliveries queued so far: new ones, and waiting ones that became due immediately. */
  made: number;
  /** Successful deliveries. */
  arrived: number;
  /** Deliveries not attempted yet: queued, or held back with their webhook. */
  underWay: number;
  /** Deliveries whose last attempt failed, whether or not they will be retried. */
  failed: number;
  /** Deliveries canceled because the webhook was unsubscribed. */
  canceled: number;
  /** `false` if the retry has 100,000 deliveries or more: not all are counted. */
  isComplete: boolean;
  /** The replay of each webhook, with what its receiver returned. */
  replays: Replay[];
}

export interface RetryPlanWebhook {
  webhookId: string;
  /** Name of the webhook. `null` if it has none. */
  name: string | null;
  url: string;
  /** Number of events that the webhook would receive. */
  count: number;
  /** Number of events in each selected delivery state. */
  byState: ReplayPlanByState;
  /** Reason why the webhook does not receive the events immediately. `null` if it does. */
  held: string | null;
}

export interface RetryPlan {
  /** Start of the period, inclusive. */
  since: string;
  /** End of the period, inclusive. Repeat it in the request that starts the retry. */
  until: string;
  /** States of the selected deliveries. */
  states: ('waiting' | 'delivered' | 'dead' | 'canceled')[];
  /** Number of events that the retry would send. */
  count: number;
  /** Number of events in each selected delivery state. */
  byState: ReplayPlanByState;
  /** `false` if 50,000 deliveries or more match: the counts are then lower bounds. */
  isComplete: boolean;
  /** Webhooks that would receive events. */
  webhooks: RetryPlanWebhook[];
}

export interface FeedUrls {
  /** Address of the feed as Atom 1.0. */
  atom: string;
  /** Address of the feed as JSON Feed 1.1. */
  json: string;
  /** Address of the page for people. */
  html: string;
}

export interface Feed {
  id: string;
  workflowId: string;
  /** Title for readers. `null`: the name of the workflow. */
  title: string | null;
  /** Expression that selects the changes. `null`: all changes. */
  filter: string | null;
  /** Whether each entry is about a changed record, or about a version. */
  entries: 'record' | 'version';
  /** Time that the feed reaches back, in whole days, such as `30d`. */
  window: string;
  /** Maximum number of entries. */
  limit: number;
  urls: FeedUrls | null;
  createdAt: string;
  /** Time of the last change of the settings. */
  changedAt: string;
}

export interface QuarantinedRecordReason {
  /** Field, or path of a nested field. */
  field: string;
  /** Setting of the field that the record does not meet. */
  expectation: string;
  /** Value of the field, shortened. */
  found: number | string | boolean | null;
  /** Value of the setting. */
  limit: number | string | boolean | null;
  /** Sentence that names the field, the limit and the value. */
  message: string;
}

export interface QuarantinedRecord {
  /** Record ID. */
  id: string;
  /** ID of the job that set the record aside. */
  jobId: string;
  /** Position of the record in its run, counting from 1. */
  position: number;
  /** Every expectation that the record does not meet. */
  reasons: QuarantinedRecordReason[];
  /** Length of the record as JSON, in bytes. */
  bytes: number;
  setAsideAt: string;
  /** The record as the run delivered it. */
  record: DataRecord;
}

export interface QuarantinedRecordBeside {
  /** Record ID. */
  id: string;
  /** ID of the job that set the record aside. */
  jobId: string;
  /** Position of the record in its run, counting from 1. */
  position: number;
  /** Every expectation that the record does not meet. */
  reasons: QuarantinedRecordReason[];
  /** Length of the record as JSON, in bytes. */
  bytes: number;
  setAsideAt: string;
  /** The record as the run delivered it. */
  record: DataRecord;
  /** Record with this ID in the newest version. `null` if there is none. */
  published: DataRecord | null;
}

export interface Inspector {
  id: string;
  /** URL of the inspector. Anyone who knows the URL can send requests to it. */
  url: string;
  /** HTTP status to respond with. 410 unsubscribes the webhook; any other status outside 2xx causes a retry. */
  status: number;
  /** Delay before the response, in milliseconds. */
  delayMs: number;
  /** Number of requests received so far. Only the newest 100 are stored. */
  received: number;
  /** Reason why the network policy (`FLOWHOOK_ALLOW_NETWORKS`) blocks deliveries to this inspector. `null` if they are allowed. */
  refusal: string | null;
  createdAt: string;
  /** Time when the inspector and its stored requests are deleted (24 hours after its creation). */
  expiresAt: string;
}

export interface InspectedRequestSignature {
  /** Result of the signature check. `expired`: valid signature, timestamp too far from now; `absent`: no signature. */
  verdict: 'valid' | 'expired' | 'invalid' | 'absent';
  /** Human-readable result. */
  message: string;
  /** ID of the webhook whose secret made the `v1` signature. `null` if none did. */
  webhookId: string | null;
}

export interface InspectedRequest {
  /** Request number, counting from 1. */
  number: number;
  receivedAt: string;
  method: string;
  /** Path and query string. */
  path: string;
  /** Header values by lowercase name. Repeated headers are joined with commas. */
  headers: Record<string, string>;
  /** First 64 KiB of the body, as UTF-8. */
  body: string;
  /** Number of bytes of the body that were read, including those that are not stored. */
  bodyBytes: number;
  /** `true` if only the first 64 KiB of the body are stored. */
  truncated: boolean;
  signature: InspectedRequestSignature;
}

export interface SystemFinding {
  group: 'machine' | 'settings' | 'files' | 'database' | 'backups' | 'network' | 'work';
  /** Name of the check, which never changes. */
  check: string;
  status: 'ok' | 'warning' | 'error' | 'skipped';
  /** Result of the check, as a sentence. */
  what: string;
  /** Consequence of the problem, or why the check was skipped. `null` if all is well. */
  why: string | null;
  /** Next step. `null` if there is nothing to do. */
  fix: string | null;
  /** Duration of the check in milliseconds. */
  tookMs: number;
}

export interface SystemChecks {
  /** `true` if no finding is an error. */
  ok: boolean;
  examinedAt: string;
  /** Duration of all checks in milliseconds. */
  tookMs: number;
  findings: SystemFinding[];
}

export interface SystemListening {
  host: string;
  port: number;
}

export interface SystemDatabase {
  kind: 'sqlite' | 'postgres';
  version: string;
  /** Size of the database in bytes. */
  bytes: number;
  /** Size of the write-ahead log in bytes. `null` on PostgreSQL. */
  walBytes: number | null;
  /** Version of the database schema. */
  schema: number;
}

export interface SystemJobs {
  queued: number;
  running: number;
  retrying: number;
  /** `false` if counting stopped early because there are 10,000 or more. */
  complete: boolean;
}

export interface SystemDeliveries {
  waiting: number;
  /** Creation time of the delivery that has waited longest. `null` if none is waiting. */
  oldestWaitingAt: string | null;
  /** Number of failing endpoints whose circuit breaker is open on this node. */
  openCircuits: number;
  /** `false` if counting stopped early because there are 10,000 or more. */
  complete: boolean;
}

export interface SystemEventLoop {
  /** Median delay. */
  p50Ms: number;
  /** 99th percentile of the delay. */
  p99Ms: number;
  /** Longest delay. */
  maxMs: number;
}

export interface SystemMemory {
  residentBytes: number;
  heapUsedBytes: number;
  heapTotalBytes: number;
  externalBytes: number;
}

export interface SystemSetting {
  /** Name of the setting in `flowhook.yaml`. */
  name: string;
  /** Name of the environment variable. */
  variable: string;
  /** Effective value; `***` for a secret. `null` if the setting has none. */
  value: string | null;
  origin: 'flag' | 'environment' | 'file' | 'default';
  /** Source of the value, such as `--port` or `flowhook.yaml: port`. `null` for a default. */
  from: string | null;
  /** Purpose of the setting. */
  sentence: string;
}

export interface System {
  /** Flowhook version. */
  version: string;
  /** Node.js version. */
  node: string;
  /** Operating system and architecture, such as `linux x64`. */
  platform: string;
  startedAt: string;
  /** Seconds since this node started. */
  uptimeSeconds: number;
  /** Role of this node: `all`, `api`, `worker` or `sender`. */
  role: string;
  /** ID of this node, which changes at every restart. */
  nodeId: string;
  /** URL at which clients reach the service: `FLOWHOOK_PUBLIC_URL`, or the listening address. */
  url: string;
  listening: SystemListening;
  database: SystemDatabase;
  /** Unfinished jobs of all teams. */
  jobs: SystemJobs;
  /** Waiting deliveries of all teams. */
  deliveries: SystemDeliveries;
  /** Event loop delay of this node in the last full minute, or since its start, in milliseconds. */
  eventLoop: SystemEventLoop;
  /** Memory of this node in bytes, without the processes of its jobs. */
  memory: SystemMemory;
  /** Settings of this node with their effective values. */
  settings: SystemSetting[];
}

export interface ChangeField {
  key: string;
  value?: unknown;
  previousValue?: unknown;
}

export interface Change {
  type: 'added' | 'changed' | 'removed';
  /** Record ID. */
  id: string;
  /** Version that published the last state of the record. */
  version: number;
  /** Added record. Present only if `type` is `added`. */
  record?: DataRecord;
  /** Fields that changed. Present only if `type` is `changed` or `removed`. */
  fields?: ChangeField[];
}

export interface ProfileFieldKinds {
  text?: number;
  number?: number;
  integer?: number;
  boolean?: number;
  list?: number;
  object?: number;
  url?: number;
  email?: number;
  date?: number;
  datetime?: number;
  numeric?: number;
}

export interface ProfileField {
  /** Name of the field, or its path in nested objects: `address.city`. */
  name: string;
  /** Number of records that have the field, with any value. */
  present: number;
  /** Number of records in which the field is not missing, `null` or an empty string. */
  filled: number;
  /** Number of filled values of each kind that occurs. `numeric` is a text that contains just a number. */
  kinds: ProfileFieldKinds;
  /** Estimated number of different texts, numbers and booleans (standard error: 6.5 %). `null` if there are none. */
  distinct: number | null;
  /** Smallest number. `null` if there is none. */
  min: number | null;
  /** Largest number. `null` if there is none. */
  max: number | null;
  /** Length of the shortest text. `null` if there is none. */
  shortest: number | null;
  /** Length of the longest text. `null` if there is none. */
  longest: number | null;
  /** First day of the dates and times. `null` if there is none. */
  earliest: string | null;
  /** Last day of the dates and times. `null` if there is none. */
  latest: string | null;
}

export interface Profile {
  /** Version that the run published. */
  version: number;
  /** ID of the job. The job may have been deleted. */
  jobId: string;
  /** Mode of the run. Runs with `replace` are compared only with each other, and so are the others. */
  mode: 'replace' | 'upsert' | 'append';
  /** Time of publication. */
  createdAt: string;
  /** Number of valid records that the run emitted, including repeated ids. */
  records: number;
  /** Number of these records that repeat an id of the run. */
  duplicates: number;
  /** Fields in order of first appearance, at most 200. */
  fields: ProfileField[];
  /** Number of fields that are not listed. Counted up to 1,000. */
  omitted: number;
}

export interface RecordChange {
  /** Change that the version made to the record. `existing`: the oldest state that is stored; what happened before is no longer known. */
  type: 'added' | 'changed' | 'removed' | 'existing';
  /** Version that published the change; for `existing` the oldest version that can be read. */
  version: number;
  /** Time when the version was published. */
  publishedAt: string;
  /** ID of the job that published the version. */
  jobId: string;
  /** The record. Present only if `type` is `added` or `existing`. */
  record?: DataRecord;
  /** Fields that changed. Present only if `type` is `changed` or `removed`. */
  fields?: ChangeField[];
}

export interface VersionRecords {
  /** Number of records in the version. */
  total: number;
  /** Number of records that are not in the previous version. */
  added: number;
  /** Number of records that differ from the previous version. */
  changed: number;
  /** Number of records of the previous version that are gone. */
  removed: number;
}

export interface Version {
  number: number;
  /** ID of the job that published the version. */
  jobId: string;
  publishedAt: string;
  records: VersionRecords;
}

export interface JobProgress {
  /** Number of records read. */
  records: number;
  /** Number of bytes read. */
  bytes: number;
  /** Number of pages read. `null` if the source does not report it. */
  pages: number | null;
  /** Message from the source. `null` if there is none. */
  message: string | null;
}

export interface JobFinding {
  /** `records.drop`, `type`, `filled`, …; with `drift` `new`, `vanished`, `type`, `filled`, `records` or `duplicates`. */
  expectation: string;
  /** Field. `null` if the expectation is about the number of records. */
  field: string | null;
  /** First value, number or percentage that is not as expected. */
  found: string | number | boolean | null;
  /** Setting of the expectation, or bound of the usual range. */
  limit: string | number | boolean | null;
  /** Number of records that do not meet it; for `records`, the number of records after the run. */
  count: number;
  /** IDs of the first records that do not meet it, at most five. */
  examples: string[];
  /** Whether this is an unusual difference from earlier runs, and not an expectation. */
  drift: boolean;
  /** Sentence that says what was found and what was expected. */
  message: string;
}

export interface Job {
  id: string;
  workflowId: string;
  state: 'queued' | 'running' | 'retrying' | 'finished' | 'failed' | 'canceled';
  origin: 'api' | 'schedule' | 'cli' | 'push';
  /** Priority among the waiting jobs of the team: jobs with a higher number start first. */
  priority: number;
  /** Number of attempts started so far. */
  attempt: number;
  /** Time of the next attempt (ISO 8601). `null` unless `state` is `retrying`. */
  nextAttemptAt: string | null;
  /** Time when cancellation was requested. `null` if it was not. */
  cancelRequestedAt: string | null;
  /** Cause of the failure, or of the last failed attempt. `null` if there is none. */
  reason: 'error' | 'source' | 'lost' | 'timeout' | 'memory' | 'output' | 'guard' | 'invalid_record' | null;
  /** Human-readable reason, or who canceled the job. `null` if there is none. */
  error: string | null;
  /** Progress of the current or last attempt. `null` before the first report. */
  progress: JobProgress | null;
  /** Version that the job published or found unchanged. `null` until the job has finished. */
  version: number | null;
  /** Number of records in `version`, and changes from the version before. `null` until the job has finished. */
  records: VersionRecords | null;
  /** Number of records set aside, because they did not meet an expectation. `null` until the job has finished. */
  quarantined: number | null;
  /** Expectations of the workflow that the run did not meet, and unusual differences from earlier runs (`drift`), at most 50. `null` if there are none. */
  findings: JobFinding[] | null;
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

export interface AuditLineActor {
  /** Kind of author. `key`: an API key; `session`: a dashboard session; `command`: a shell command; `file`: a workflow file; `service`: the service itself at startup; `unknown`: a caller who was refused. */
  kind: 'key' | 'session' | 'command' | 'file' | 'service' | 'unknown';
  /** ID of the API key; for a session, of the key that signed in. `null` if no key was used. */
  id: string | null;
  /** Name of the API key or of the operating system user. `null` if unknown. */
  name: string | null;
}

export interface AuditLineTarget {
  kind: 'team' | 'key' | 'workflow' | 'job' | 'webhook' | 'delivery' | 'inspector' | 'feed' | 'backup';
  id: string;
}

export interface AuditLine {
  id: string;
  createdAt: string;
  /** Slug of the team. `null` if the line belongs to the instance, such as the deletion of a team. */
  team: string | null;
  /** Operation, such as `webhooks.subscribe` or `records.erase`. */
  action: string;
  actor: AuditLineActor;
  /** Changed resource. `null` if the change has no single target. */
  target: AuditLineTarget | null;
  /** IP address of the client. `null` if the change was not requested over HTTP. */
  address: string | null;
  /** `x-request-id` of the request, for finding it in the log. `null` if there was no request. */
  requestId: string | null;
  summary: string;
  /** Erasure report: what was found and where; or URL and events of a webhook, `before` and `after` a change, without what may be secret in a URL. Empty for other operations. */
  details: Record<string, unknown>;
}

export interface Key {
  id: string;
  name: string;
  /** First characters of the key, to recognize it by. */
  prefix: string;
  scopes: ('read' | 'queue' | 'webhooks' | 'admin' | 'operator')[];
  createdAt: string;
  /** Time when the key stops working. `null` if it never expires. */
  expiresAt: string | null;
  /** Time when the key was revoked. `null` if it was not. */
  revokedAt: string | null;
  /** Time of the last use, accurate to one minute. `null` if the key was never used. */
  lastUsedAt: string | null;
  /** `unused`: not used for 90 days; `expires_soon`: expires within 14 days, or within the last fifth of its lifetime if that is shorter. `null` if neither, or if the key is revoked or expired. */
  concern: 'unused' | 'expires_soon' | null;
}

export interface SigningKey {
  id: string;
  type: 'ed25519';
  /** `whpk_` followed by the 32 bytes of the public key in base64. */
  key: string;
  createdAt: string;
}

export interface LogLine {
  /** Line number within the attempt, counting from 1. Gaps mean that lines were dropped. */
  seq: number;
  time: string;
  level: 'debug' | 'info' | 'warn' | 'error';
  text: string;
}

export interface WorkflowSource {
  type: 'command' | 'module' | 'http' | 'push';
}

export interface WorkflowSchedule {
  cron?: string;
  timezone?: string;
  /** Interval in milliseconds. */
  everyMs?: number;
  missed: 'run' | 'skip';
}

export interface WorkflowKeep {
  versions: number;
  days: number;
}

export interface WorkflowHistoryOldest {
  version: number;
  publishedAt: string;
}

export interface WorkflowHistory {
  /** Number of versions that can be read. */
  versions: number;
  /** Oldest version that can be read. `null` before the first version. */
  oldest: WorkflowHistoryOldest | null;
  /** Size of the records that only older versions contain, in bytes, without indexes. */
  bytes: number;
}

export interface JobGlance {
  id: string;
  state: 'queued' | 'running' | 'retrying' | 'finished' | 'failed' | 'canceled';
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

export interface Workflow {
  id: string;
  name: string;
  source: WorkflowSource;
  mode: 'replace' | 'upsert' | 'append';
  /** `cron` with `timezone`, or `everyMs`. `missed`: with `run`, one run replaces all missed runs; with `skip`, they are skipped. `null` if the workflow has no schedule. */
  schedule: WorkflowSchedule | null;
  /** Time of the next scheduled run. `null` if there is no schedule or the workflow is paused. */
  nextRunAt: string | null;
  paused: boolean;
  /** Time when the workflow was paused. `null` if it is not paused. */
  pausedAt: string | null;
  /** Time by which a run must succeed; if the workflow is stale, this time has passed. `null` if the definition has no `fresh` or the workflow is paused. */
  freshUntil: string | null;
  /** Time when the workflow was found to be stale: no run has succeeded for `fresh`. `null` if it is not stale. */
  staleSince: string | null;
  /** Newest version of the records. 0 before the first. */
  version: number;
  /** Number of records in the newest version. */
  records: number;
  /** Versions that are kept: the newest `versions`, superseded at most `days` ago. */
  keep: WorkflowKeep;
  history: WorkflowHistory;
  /** Current unfinished job. `null` if there is none. */
  currentJob: Job | null;
  /** Most recent job that has ended. `null` if there is none. */
  lastJob: Job | null;
  /** Newest jobs first. Present only if the query parameter `recentJobs` is set. */
  recentJobs?: JobGlance[];
}

/** Event, exactly as webhooks receive it. */
export type FlowhookEvent = (WorkflowQueuedEvent | WorkflowStartedEvent | WorkflowDataChangeEvent | WorkflowSchemaChangedEvent | WorkflowExpectationFailedEvent | WorkflowFinishedEvent | WorkflowFailedEvent | WorkflowCanceledEvent | WorkflowStaleEvent | WorkflowRecoveredEvent | WebhookTestEvent | WebhookPausedEvent | WebhookFailingEvent | WebhookDigestEvent) & { workflowId?: string; jobId?: string };

export interface WorkflowQueuedEventData {
  workflowId: string;
  jobId: string;
  state: 'queued';
  queuedAt: string;
}

/** A job was queued for a workflow. */
export interface WorkflowQueuedEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_queued';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_queued';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  data: WorkflowQueuedEventData;
}

export interface WorkflowStartedEventData {
  workflowId: string;
  jobId: string;
  state: 'running';
  queuedAt: string;
  startedAt: string;
}

/** The first attempt of a job has started. Sent once per job, not once per attempt. */
export interface WorkflowStartedEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_started';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_started';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  data: WorkflowStartedEventData;
}

export interface WorkflowDataChangeEventDataRecords {
  total: number;
  added: number;
  changed: number;
  removed: number;
}

export interface WorkflowDataChangeEventDataDifferenceField {
  key: string;
  value?: unknown;
  previousValue?: unknown;
}

export interface WorkflowDataChangeEventDataDifference {
  type: 'added' | 'changed' | 'removed';
  id: string;
  fields: WorkflowDataChangeEventDataDifferenceField[];
}

export interface WorkflowDataChangeEventData {
  workflowId: string;
  jobId: string;
  state: 'finished';
  queuedAt: string;
  startedAt: string;
  finishedAt: string;
  /** Newest version of the records. */
  version: number;
  records: WorkflowDataChangeEventDataRecords;
  /** Number of records that were set aside. Missing if there are none. */
  quarantined?: number;
  /** URL of the records; reading them requires an API key. */
  dataUrl: string;
  /** Version before this one. 0 if there was none. */
  previousVersion: number;
  differences: WorkflowDataChangeEventDataDifference[];
  /** Whether `differences` is incomplete. */
  truncated: boolean;
  /** URL of all differences; reading them requires an API key. */
  changesUrl: string;
}

/** A run has published records that differ from the previous version. `differences` lists as many differences as fit; if `truncated` is true, `changesUrl` returns all of them. `workflow_finished` follows. */
export interface WorkflowDataChangeEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_data_change';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_data_change';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowDataChangeEventData;
}

export interface WorkflowSchemaChangedEventDataFinding {
  /** `records.drop`, `type`, `filled`, …; with `drift` `new`, `vanished`, `type`, `filled`, `records` or `duplicates`. */
  expectation: string;
  /** Field. `null` if the expectation is about the number of records. */
  field: string | null;
  /** First value, number or percentage that is not as expected. */
  found: string | number | boolean | null;
  /** Setting of the expectation, or bound of the usual range. */
  limit: string | number | boolean | null;
  /** Number of records that do not meet it; for `records`, the number of records after the run. */
  count: number;
  /** IDs of the first records that do not meet it, at most five. */
  examples: string[];
  /** Whether this is an unusual difference from earlier runs, and not an expectation. */
  drift: boolean;
}

export interface WorkflowSchemaChangedEventData {
  workflowId: string;
  jobId: string;
  state: 'finished';
  queuedAt: string;
  startedAt: string;
  finishedAt: string;
  /** Newest version of the records. */
  version: number;
  records: WorkflowDataChangeEventDataRecords;
  /** Number of records that were set aside. Missing if there are none. */
  quarantined?: number;
  /** URL of the records; reading them requires an API key. */
  dataUrl: string;
  /** Human-readable summary of `findings`. */
  error: string;
  findings: WorkflowSchemaChangedEventDataFinding[];
  /** Whether `findings` is incomplete. */
  truncated: boolean;
}

/** A job has published records with a new field, without a field that earlier runs had, or with a new type of values. `findings` has as many of these changes as fit. Sent once per change. `workflow_finished` follows. */
export interface WorkflowSchemaChangedEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_schema_changed';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_schema_changed';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowSchemaChangedEventData;
}

/** A job has published records that do not meet an expectation of the workflow (`otherwise: warn` or `quarantine`), or whose number, repeated ids or filled values are unusual (`drift` of the finding). `findings` has as many findings as fit. `workflow_finished` follows. */
export interface WorkflowExpectationFailedEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_expectation_failed';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_expectation_failed';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowSchemaChangedEventData;
}

export interface WorkflowFinishedEventData {
  workflowId: string;
  jobId: string;
  state: 'finished';
  queuedAt: string;
  startedAt: string;
  finishedAt: string;
  /** Newest version of the records. */
  version: number;
  records: WorkflowDataChangeEventDataRecords;
  /** Number of records that were set aside. Missing if there are none. */
  quarantined?: number;
  /** URL of the records; reading them requires an API key. */
  dataUrl: string;
}

/** A job has finished, whether or not it changed any record. */
export interface WorkflowFinishedEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_finished';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_finished';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowFinishedEventData;
}

export interface WorkflowFailedEventData {
  workflowId: string;
  jobId: string;
  state: 'failed';
  queuedAt: string;
  finishedAt: string;
  reason: 'error' | 'source' | 'lost' | 'timeout' | 'memory' | 'output' | 'guard' | 'invalid_record';
  /** Human-readable reason. */
  error: string | null;
  /** Number of attempts made. */
  attempt: number;
  startedAt?: string;
}

/** A job has failed and will not be retried. The published records are unchanged. */
export interface WorkflowFailedEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_failed';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_failed';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowFailedEventData;
}

export interface WorkflowCanceledEventData {
  workflowId: string;
  jobId: string;
  state: 'canceled';
  queuedAt: string;
  finishedAt: string;
  /** Who canceled the job. */
  error: string | null;
  /** Number of attempts made. */
  attempt: number;
  startedAt?: string;
}

/** A job was canceled, before it started or while it was running. The published records are unchanged. */
export interface WorkflowCanceledEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_canceled';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_canceled';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowCanceledEventData;
}

export interface WorkflowStaleEventDataLastJob {
  id: string;
  state: 'finished' | 'failed' | 'canceled';
  finishedAt: string;
  /** Reason why it failed, or who canceled it. */
  error: string | null;
}

export interface WorkflowStaleEventData {
  workflowId: string;
  /** Sentence for people that says how long no run has succeeded. */
  reason: string;
  /** `fresh` of the definition, in milliseconds. */
  freshMs: number;
  /** Time of the last successful run, or of a later change of `fresh` or end of a pause. */
  waitingSince: string;
  /** Time by which a run should have succeeded: `waitingSince` plus `freshMs`. */
  dueAt: string;
  /** Newest version of the records. 0 if there is none. */
  version: number;
  /** Most recent job that has ended. `null` if there is none. */
  lastJob: WorkflowStaleEventDataLastJob | null;
}

/** No run of the workflow has succeeded for the time that its definition sets as `fresh`. Sent once; a run that succeeds causes `workflow_recovered`. */
export interface WorkflowStaleEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_stale';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_stale';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  data: WorkflowStaleEventData;
  workflowId: string;
}

export interface WorkflowRecoveredEventData {
  workflowId: string;
  jobId: string;
  state: 'finished';
  queuedAt: string;
  startedAt: string;
  finishedAt: string;
  /** Newest version of the records. */
  version: number;
  records: WorkflowDataChangeEventDataRecords;
  /** Number of records that were set aside. Missing if there are none. */
  quarantined?: number;
  /** URL of the records; reading them requires an API key. */
  dataUrl: string;
  /** Time of `workflow_stale`. */
  staleSince: string;
}

/** A job of a stale workflow has finished, so the workflow is not stale any more. Follows `workflow_finished` of this job. */
export interface WorkflowRecoveredEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'workflow_recovered';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'workflow_recovered';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowRecoveredEventData;
}

export interface WebhookTestEventData {
  webhookId: string;
  message: string;
}

/** A test event. Only the tested webhook receives this event, even if it is not subscribed to this type. */
export interface WebhookTestEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'webhook_test';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'webhook_test';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  data: WebhookTestEventData;
  workflowId?: string;
}

export interface WebhookPausedEventData {
  webhookId: string;
  url: string;
  pausedAt: string;
  reason: string;
}

/** A webhook has been paused and receives nothing until it is resumed. Sent to the other webhooks of its workflow and to webhooks for all workflows of the team. */
export interface WebhookPausedEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'webhook_paused';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'webhook_paused';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  data: WebhookPausedEventData;
  workflowId?: string;
}

export interface WebhookFailingEventData {
  webhookId: string;
  /** Name of the webhook. */
  name: string | null;
  url: string;
  /** Time of the first failed attempt since the last successful delivery. */
  since: string;
  /** Number of failed attempts in a row. */
  failures: number;
  /** Human-readable reason why the last attempt failed. */
  lastError: string | null;
  /** Time of the next attempt. */
  retriesAt: string;
}

/** The endpoint of a webhook is failing, so its deliveries are held back, except for an occasional probe. Sent the first time since the last successful delivery, to the other webhooks of its workflow and to webhooks for all workflows of the team. */
export interface WebhookFailingEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'webhook_failing';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'webhook_failing';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  data: WebhookFailingEventData;
  workflowId?: string;
}

export interface WebhookDigestEventDataWorkflowDifference {
  type: 'added' | 'changed' | 'removed';
  id: string;
  /** Name of the record, for people: its `name`, `title` or a similar field, or its id. */
  title: string;
  /** A link of the record. `null` if it has none. */
  url: string | null;
  fields: WorkflowDataChangeEventDataDifferenceField[];
  /** Number of differing fields that are not listed, because they are long. */
  moreFields?: number;
}

export interface WebhookDigestEventDataWorkflow {
  workflowId: string;
  /** Newest version in the digest. `null` if no record has matched. */
  version: number | null;
  /** Version before the first match. `null` if no record has matched. */
  previousVersion: number | null;
  matched: number;
  records: number;
  differences: WebhookDigestEventDataWorkflowDifference[];
  /** Whether `differences` is incomplete. */
  truncated: boolean;
}

export interface WebhookDigestEventDataEvent {
  id: string;
  type: string;
  timestamp: string;
  workflowId: string | null;
  jobId: string | null;
  /** Reason why a run failed or a webhook was paused. */
  summary: string | null;
}

export interface WebhookDigestEventData {
  webhookId: string;
  /** Time of the first match. */
  from: string;
  /** Time of the end of the digest. */
  until: string;
  /** Number of matches: differences of records, and other events. */
  matched: number;
  /** Number of records that the digest has kept, listed or not: at most 1,000. */
  records: number;
  workflows: WebhookDigestEventDataWorkflow[];
  events: WebhookDigestEventDataEvent[];
  /** Number of matching events that are not listed. */
  more: number;
}

/** Everything that has matched the rule of a webhook with a digest since `from`, with the newest state of each record. Only that webhook receives this event, even if it is not subscribed to this type. */
export interface WebhookDigestEvent {
  /** Event ID, sent as the header `webhook-id` in every attempt. */
  id: string;
  /** Team that the event belongs to. */
  teamId: string;
  /** Type of the event. Standard Webhooks uses this field name. */
  type: 'webhook_digest';
  /** Same value as `type`, for receivers that expect this name. */
  eventType: 'webhook_digest';
  /** Time of the event, in ISO 8601 (UTC with milliseconds). */
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  data: WebhookDigestEventData;
  workflowId?: string;
}

export interface WorkflowDefinition {
  /** Place where the definition is maintained. */
  origin: 'file' | 'api';
  /** Path in the workflows directory. `null` if the workflow was created over the API. */
  file: string | null;
  /** Definition as written, in YAML, TypeScript or JSON. `null` if this node does not have the file. */
  text: string | null;
  /** `true` if `text` is the definition in use. `null` if `text` is `null`. */
  applied: boolean | null;
  /** Definition with every default filled in. */
  definition: Record<string, unknown>;
}

export interface NewFeed {
  /** Title for readers. `null`: the name of the workflow. */
  title?: string | null;
  /** Expression in the Common Expression Language that selects the changes, as in webhooks. `null` for all changes. */
  filter?: string | null;
  /** Whether each entry is about a changed record, or about a version. */
  entries?: 'record' | 'version';
  /** Time that the feed reaches back, from `1d` to `365d`, as far as events are kept. */
  window?: string;
  /** Maximum number of entries. */
  limit?: number;
}

export interface FeedChanges {
  /** Title for readers. `null`: the name of the workflow. */
  title?: string | null;
  /** Expression in the Common Expression Language that selects the changes, as in webhooks. `null` for all changes. */
  filter?: string | null;
  /** Whether each entry is about a changed record, or about a version. */
  entries?: 'record' | 'version';
  /** Time that the feed reaches back, from `1d` to `365d`, as far as events are kept. */
  window?: string;
  /** Maximum number of entries. */
  limit?: number;
}

export interface PushResult {
  message: string;
  jobId: string;
  /** Version that the push published or found unchanged. */
  version: number;
  records: VersionRecords;
  /** Warning, present if the push removed more than half of 20 or more records, or did not meet an expectation. */
  warning?: string;
}

export interface AcceptQuarantineResultConflict {
  /** Record ID. */
  id: string;
  /** `published`: a newer record with this ID was published. `set_aside_again`: a job after `untilJobId` has set another record with this ID aside. `not_found`: there is no record with this ID. */
  reason: 'published' | 'set_aside_again' | 'not_found';
}

export interface QuarantineAccepted {
  message: string;
  jobId: string;
  /** Version that the job published or found unchanged. */
  version: number;
  records: VersionRecords;
  /** Number of records that were accepted. */
  accepted: number;
  /** Given IDs whose records were left as they are. Empty with `all`. */
  conflicts: AcceptQuarantineResultConflict[];
}

export interface QuarantineDropped {
  message: string;
  /** Number of records that were deleted. */
  dropped: number;
  /** Given IDs whose records were left as they are. Empty with `all`. */
  conflicts: AcceptQuarantineResultConflict[];
}

export interface ErasePersonResultFound {
  workflowId: string | null;
  place: string;
  count: number;
}

export interface ErasePersonResultDisk {
  /** `true` if the write-ahead log was emptied. */
  logEmptied: boolean | null;
  /** `true` if the database was rewritten. */
  rewritten: boolean;
  /** `true` if traces of the person are left in the files. */
  tracesLeft: boolean | null;
}

export interface ErasureReport {
  dryRun: boolean;
  /** Matches that were removed or redacted, or would be. */
  found: ErasePersonResultFound[];
  /** Matches that remain: records of other people, and definitions. */
  left: ErasePersonResultFound[];
  suppressed: boolean;
  /** Cleanup of the database files. `null` for a dry run. Fields whose value is unknown are `null`: on PostgreSQL, Flowhook cannot see the log, replicas and backups. */
  disk: ErasePersonResultDisk | null;
  /** Number of older copies of the database that may contain the person. */
  backups: number;
}

export interface CreateWebhookRequestDigest {
  /** Length of a digest, from its first match: from `1m` to `7d`. */
  every?: string;
  /** Time of day when digests are sent. */
  at?: string;
  /** IANA name of the time zone of `at` (default: `UTC`). */
  timeZone?: string;
}

export interface WebhookSettings {
  /** `true` to send one delivery at a time, in the order of the events. A failing delivery then delays the ones after it. */
  ordered?: boolean;
  /** Maximum number of requests per second. `null` if unlimited. */
  ratePerSecond?: number | null;
  /** Time limit of one attempt, in milliseconds. */
  timeoutMs?: number;
  /** Headers to send with every delivery. Their values are never shown again. `null` to send none. */
  headers?: Record<string, string> | null;
}

export interface NewWebhook {
  /** Callback URL: absolute, http or https; or `mailto:` with one address. */
  webhookUrl: string;
  /** Event names or aliases from `GET /v1/events/types`, or `*` for all. */
  events: string[];
  /** Workflow ID (default: `null`, all workflows of the team). */
  workflowId?: string | null;
  /** Name for people. `null` for none. */
  name?: string | null;
  /** Purpose of the webhook, for people. `null` for none. */
  description?: string | null;
  /** Words by which the list is filtered. */
  labels?: string[];
  /** Expression in the Common Expression Language that decides which events, or which of their differences, are sent. `null` to send all. */
  filter?: string | null;
  /** Form of the body: `standard`, `cloudevents` (CloudEvents 1.0, structured mode), `template`, a message for people (`slack`, `discord`, `teams`), or `mail`, which only `mailto:` has. `null` for `mail` if the URL is `mailto:`, otherwise `standard`. */
  format?: 'standard' | 'cloudevents' | 'template' | 'slack' | 'discord' | 'teams' | 'mail' | null;
  /** JSON to send with the format `template`; `${…}` in its strings holds expressions. At most 16 KiB. `null` for none. */
  template?: unknown;
  /** Whether the first version of a workflow is sent. `null`: `skip` if the filter reads records, otherwise `send`. */
  firstVersion?: 'send' | 'skip' | null;
  /** Time for which nothing more is sent about a record that was sent, from `1s` to `7d`. Requires a filter that reads records. `null` for no limit. */
  cooldown?: string | null;
  /** Gathers what matches, and sends it in one message with the newest state of each record: either `every` or `at`. Not with a cooldown. `null` to send everything immediately. */
  digest?: CreateWebhookRequestDigest | null;
  /** IANA name of the zone of times in messages for people. `null` for the zone of the digest, or UTC. */
  timeZone?: string | null;
  settings?: WebhookSettings;
}

export interface WebhookChanges {
  /** New callback URL: absolute, http or https; or `mailto:` with one address if the webhook sends mail. */
  url?: string;
  /** Event names or aliases from `GET /v1/events/types`, or `*` for all. */
  events?: string[];
  /** `true` to replace the secret immediately, for example because somebody else receives at the new URL. `POST …/rotate` replaces it with an overlap. */
  rotateSecret?: boolean;
  /** Name for people. `null` for none. */
  name?: string | null;
  /** Purpose of the webhook, for people. `null` for none. */
  description?: string | null;
  /** Words by which the list is filtered. */
  labels?: string[];
  /** Expression in the Common Expression Language that decides which events, or which of their differences, are sent. `null` to send all. */
  filter?: string | null;
  /** Form of the body: `standard`, `cloudevents` (CloudEvents 1.0, structured mode), `template`, a message for people (`slack`, `discord`, `teams`), or `mail`, which only `mailto:` has. `null` for `mail` if the URL is `mailto:`, otherwise `standard`. */
  format?: 'standard' | 'cloudevents' | 'template' | 'slack' | 'discord' | 'teams' | 'mail' | null;
  /** JSON to send with the format `template`; `${…}` in its strings holds expressions. At most 16 KiB. `null` for none. */
  template?: unknown;
  /** Whether the first version of a workflow is sent. `null`: `skip` if the filter reads records, otherwise `send`. */
  firstVersion?: 'send' | 'skip' | null;
  /** Time for which nothing more is sent about a record that was sent, from `1s` to `7d`. Requires a filter that reads records. `null` for no limit. */
  cooldown?: string | null;
  /** Gathers what matches, and sends it in one message with the newest state of each record: either `every` or `at`. Not with a cooldown. `null` to send everything immediately. */
  digest?: CreateWebhookRequestDigest | null;
  /** IANA name of the zone of times in messages for people. `null` for the zone of the digest, or UTC. */
  timeZone?: string | null;
  /** `true` to send one delivery at a time, in the order of the events. A failing delivery then delays the ones after it. */
  ordered?: boolean;
  /** Maximum number of requests per second. `null` if unlimited. */
  ratePerSecond?: number | null;
  /** Time limit of one attempt, in milliseconds. */
  timeoutMs?: number;
  /** Headers to send with every delivery. Their values are never shown again. `null` to send none. */
  headers?: Record<string, string> | null;
}

export interface RotateWebhookSecretResult {
  message: string;
  /** `whsec_` followed by the secret in base64. */
  secret: string;
  /** Time until which deliveries are also signed with the old secret (ISO 8601). */
  overlapUntil: string;
}

export interface TestWebhookResult {
  message: string;
  eventId: string;
  deliveryId: string;
}

export interface TryWebhookRequest {
  /** Expression in the Common Expression Language that decides which events, or which of their differences, are sent. `null` to send all. */
  filter?: string | null;
  /** Form of the body: `standard`, `cloudevents` (CloudEvents 1.0, structured mode), `template`, a message for people (`slack`, `discord`, `teams`), or `mail`, which only `mailto:` has. `null` for `mail` if the URL is `mailto:`, otherwise `standard`. */
  format?: 'standard' | 'cloudevents' | 'template' | 'slack' | 'discord' | 'teams' | 'mail' | null;
  /** JSON to send with the format `template`; `${…}` in its strings holds expressions. At most 16 KiB. `null` for none. */
  template?: unknown;
  /** Whether the first version of a workflow is sent. `null`: `skip` if the filter reads records, otherwise `send`. */
  firstVersion?: 'send' | 'skip' | null;
  /** Time for which nothing more is sent about a record that was sent, from `1s` to `7d`. Requires a filter that reads records. `null` for no limit. */
  cooldown?: string | null;
  /** Gathers what matches, and sends it in one message with the newest state of each record: either `every` or `at`. Not with a cooldown. `null` to send everything immediately. */
  digest?: CreateWebhookRequestDigest | null;
  /** IANA name of the zone of times in messages for people. `null` for the zone of the digest, or UTC. */
  timeZone?: string | null;
  /** Only events of this workflow (default: `null`, all workflows of the team). */
  workflowId?: string | null;
  /** Only these events, by name or alias (default: all). */
  events?: string[];
  /** Number of events (default: 20). */
  last?: number;
}

export interface TryWebhookResultTriedMistake {
  /** ID of the record. `null` if no record was read. */
  recordId: string | null;
  message: string;
}

export interface TryWebhookResultTried {
  eventId: string;
  /** Type of the event. */
  type: string;
  /** Time of the event, in ISO 8601. */
  timestamp: string;
  /** `true` if the webhook would have been called. */
  sent: boolean;
  /** `true` for a message that is sent because cooldowns of records ended. */
  cooldownEnded: boolean;
  /** Number of differences that match. `null` if the rule reads no records. */
  matched: number | null;
  /** Number of differences of the event. `null` if the rule reads no records. */
  examined: number | null;
  /** Headers that depend on the rule. `null` if nothing is sent. */
  headers: Record<string, string> | null;
  /** Body that would have been sent, to the byte, or what an open digest contains. `null` if nothing is sent. */
  body: string | null;
  /** Human-readable reason why nothing is sent. `null` if the event is sent. */
  reason: string | null;
  /** First mistake while the filter or the template was evaluated. `null` if there was none. */
  mistake: TryWebhookResultTriedMistake | null;
}

export interface TryWebhookResultMistake {
  /** Field of the request. */
  field: string;
  /** Description of the mistake, and what to write instead. */
  message: string;
  /** Start of the mistake: number of characters before it. `null` if unknown. */
  from: number | null;
  /** End of the mistake: number of characters before its end. `null` if unknown. */
  to: number | null;
}

export interface TryWebhookResult {
  /** Events, newest last. */
  tried: TryWebhookResultTried[];
  /** First mistake in the rule; `tried` is empty then. `null` if the rule is valid. */
  mistake: TryWebhookResultMistake | null;
}

export interface DeliveryCommand {
  /** `curl` command for a POSIX shell. */
  command: string;
  /** Names of headers whose values must be filled in where the command has `***`. */
  hidden: string[];
  /** Time until which receivers accept the signature (5 minutes from now). */
  validUntil: string;
}

export interface ReplayDeliveryResult {
  message: string;
  /** ID of the delivery that sends the event. */
  deliveryId: string;
  /** `true` if a waiting delivery was used instead of creating a new one. */
  retried: boolean;
  /** Number of attempts that the delivery has already had. */
  attempt: number;
}

export interface InspectorAnswer {
  /** HTTP status to respond with. 410 unsubscribes the webhook; any other status outside 2xx causes a retry. */
  status?: number;
  /** Delay before the response, in milliseconds. */
  delayMs?: number;
}

export interface EventKind {
  type: 'workflow_queued' | 'workflow_started' | 'workflow_data_change' | 'workflow_schema_changed' | 'workflow_expectation_failed' | 'workflow_finished' | 'workflow_failed' | 'workflow_canceled' | 'workflow_stale' | 'workflow_recovered' | 'webhook_test' | 'webhook_paused' | 'webhook_failing' | 'webhook_digest';
  /** Other names that subscriptions may use, in any letter case. `*` subscribes to all types. */
  aliases: string[];
  description: string;
  /** JSON Schema 2020-12 of the event. */
  schema: Record<string, unknown>;
  example: FlowhookEvent;
}

export interface JobCounts {
  queued: number;
  running: number;
  retrying: number;
  finished: number;
  failed: number;
  canceled: number;
  /** `false` if there may be older ended jobs, which are not counted. */
  complete: boolean;
}

export interface JobLogs {
  attempt: number;
  lines: LogLine[];
  /** Value of `after` for the next call. `null` if these were the last lines. */
  next: number | null;
}

export interface SearchResultHit {
  type: 'workflows' | 'webhooks' | 'jobs' | 'deliveries' | 'events' | 'records';
  id: string;
  /** Name of the object, or of what it belongs to. */
  title: string;
  /** Text with the match. */
  text: string;
  /** Path of the page in the dashboard. */
  path: string;
}

export interface SearchResult {
  hits: SearchResultHit[];
  /** Types that were not searched completely. */
  incomplete: ('workflows' | 'webhooks' | 'jobs' | 'deliveries' | 'events' | 'records')[];
}

export interface MeTeam {
  id: string;
  slug: string;
}

export interface MeKey {
  id: string;
  name: string;
  /** First characters of the key, to recognize it by. */
  prefix: string;
  scopes: ('read' | 'queue' | 'webhooks' | 'admin' | 'operator')[];
  /** Time when the key stops working. `null` if it never expires. */
  expiresAt: string | null;
}

export interface MeLimits {
  /** Items per page if `limit` is not set. */
  defaultPageSize: number;
  /** Highest `limit` of most lists. */
  maxPageSize: number;
  /** Maximum size of a JSON request body, in bytes. A push may be of any length. */
  maxBodyBytes: number;
  /** Maximum number of active webhooks per workflow. */
  maxWebhooksPerWorkflow: number;
  /** Maximum number of workflows in the team. `null` if unlimited. */
  maxWorkflows: number | null;
  /** Maximum number of webhooks in the team, across all workflows. `null` if unlimited. */
  maxWebhooks: number | null;
  /** Maximum number of keys that are neither revoked nor expired. `null` if unlimited. */
  maxKeys: number | null;
  /** Maximum number of records in the current versions of all workflows. `null` if unlimited. */
  maxRecords: number | null;
  /** Maximum size of the records in the current versions of all workflows, in bytes of JSON text. `null` if unlimited. */
  maxStoredBytes: number | null;
  /** Maximum number of jobs that run at the same time; further jobs wait. `null` if unlimited. */
  maxRunningJobs: number | null;
}

export interface Me {
  team: MeTeam;
  key: MeKey;
  limits: MeLimits;
}

export interface UsageBucketJobs {
  finished: number;
  failed: number;
  canceled: number;
}

export interface UsageBucketRecords {
  added: number;
  changed: number;
  removed: number;
}

export interface UsageBucketDeliveriesLatencyMs {
  /** Milliseconds. `null` if nothing was delivered. */
  p50: number | null;
  /** Milliseconds. `null` if nothing was delivered. */
  p95: number | null;
}

export interface UsageBucketDeliveries {
  delivered: number;
  /** Number of failed attempts, whether or not they were retried. */
  failedAttempts: number;
  /** Number of deliveries that became `dead`. */
  dead: number;
  /** Response times of the endpoints for successful deliveries, estimated from a histogram with the bounds 1, 2, 5, 10, 20, 50 ms and so on. */
  latencyMs: UsageBucketDeliveriesLatencyMs;
}

export interface UsageBucket {
  start: string;
  /** Jobs that ended in this period. Omitted from the usage of a webhook. */
  jobs?: UsageBucketJobs;
  /** Records changed by jobs that finished in this period. Omitted from the usage of a webhook. */
  records?: UsageBucketRecords;
  /** Deliveries in this period. Omitted from the usage of a workflow. */
  deliveries?: UsageBucketDeliveries;
}

export interface Usage {
  by: 'hour' | 'day';
  /** Start of the first bucket. */
  from: string;
  /** End of the last bucket. */
  to: string;
  /** Time up to which everything is counted. */
  countedUntil: string;
  buckets: UsageBucket[];
}

export interface MadeKey {
  message: string;
  /** API key to send in `x-api-key`. Shown only in this response. */
  apiKey: string;
  key: Key;
}
