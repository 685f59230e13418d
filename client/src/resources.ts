/**
 * What the service answers with, made of its OpenAPI document by client/write-resources.ts. Times are ISO 8601 in UTC
 * with milliseconds.
 */

/** A data record. A workflow may add other fields. */
export interface DataRecord {
  /** Record identifier. */
  id: string;
  name?: string;
  email?: string;
  [field: string]: unknown;
}

export interface Webhook {
  /** Webhook identifier. */
  id: string;
  createdAt: string;
  /** Callback URL. */
  url: string;
  /** The events subscribed to. */
  events: string[];
}

export interface WebhookDetailSettings {
  ordered: boolean;
  /** null: no limit. */
  ratePerSecond: number | null;
  timeoutMs: number;
  /** Their names; never their values. null: they were sealed with another encryption key; set them anew. */
  headers: string[] | null;
}

export interface WebhookDetailBreaker {
  state: 'closed' | 'open' | 'half_open';
  /** Since when deliveries are held back; null: they are not. */
  since: string | null;
  /** When the next attempt goes out, while the endpoint fails or is held back; null: nothing waits, or it is paused. A time that has passed: as soon as it can. */
  nextAttemptAt: string | null;
  /** Why they are held back: a sentence. */
  reason: string | null;
}

export interface WebhookDetail {
  id: string;
  /** null: every workflow of the team. */
  workflowId: string | null;
  createdAt: string;
  url: string;
  events: string[];
  state: 'active' | 'paused';
  settings: WebhookDetailSettings;
  pausedAt: string | null;
  pausedReason: string | null;
  /** Since when every attempt has failed. */
  failingSince: string | null;
  /** Whether what is due goes out at once. `open`: only one attempt now and then, as a probe. */
  breaker: WebhookDetailBreaker;
  /** Accurate to a minute. */
  lastSuccessAt: string | null;
}

export interface DeliveryLastAttempt {
  at: string;
  outcome: 'ok' | 'http' | 'timeout' | 'dns' | 'connect' | 'tls' | 'blocked' | 'protocol';
  /** Of the answer. */
  status: number | null;
  /** The outcome in plain words. */
  message: string;
}

export interface Delivery {
  id: string;
  webhookId: string;
  eventId: string;
  eventType: 'workflow_queued' | 'workflow_started' | 'workflow_data_change' | 'workflow_finished' | 'workflow_failed' | 'workflow_canceled' | 'webhook_test' | 'webhook_paused';
  origin: 'event' | 'test' | 'replay';
  state: 'waiting' | 'delivered' | 'dead' | 'canceled';
  /** Attempts made so far. */
  attempt: number;
  createdAt: string;
  /** Of a delivery that is `waiting`. */
  nextAttemptAt: string | null;
  lastAttempt: DeliveryLastAttempt | null;
}

export interface DeliveryDetailAttemptRequest {
  url: string;
  headers: Record<string, string>;
}

export interface DeliveryDetailAttemptResponse {
  headers: Record<string, string>;
  /** Its first 2 KiB. */
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
  number: number;
  startedAt: string;
  durationMs: number;
  outcome: 'ok' | 'http' | 'timeout' | 'dns' | 'connect' | 'tls' | 'blocked' | 'protocol';
  /** Of the answer. */
  status: number | null;
  /** The outcome in plain words. */
  message: string;
  /** Without the values of headers that are secret. */
  request: DeliveryDetailAttemptRequest | null;
  response: DeliveryDetailAttemptResponse | null;
  remoteAddress: string | null;
  /** Milliseconds: waiting in line, then from the start of the attempt until each was done. */
  timing: DeliveryDetailAttemptTiming | null;
}

export interface DeliveryDetail {
  id: string;
  webhookId: string;
  eventId: string;
  eventType: 'workflow_queued' | 'workflow_started' | 'workflow_data_change' | 'workflow_finished' | 'workflow_failed' | 'workflow_canceled' | 'webhook_test' | 'webhook_paused';
  origin: 'event' | 'test' | 'replay';
  state: 'waiting' | 'delivered' | 'dead' | 'canceled';
  /** Attempts made so far. */
  attempt: number;
  createdAt: string;
  /** Of a delivery that is `waiting`. */
  nextAttemptAt: string | null;
  lastAttempt: DeliveryLastAttempt | null;
  event: FlowhookEvent;
  /** Oldest first. */
  attempts: DeliveryDetailAttempt[];
}

export interface ReplayOutcomeFailure {
  /** Of the answer. */
  status: number | null;
  /** The outcome in plain words. */
  message: string;
  count: number;
  /** How many of them are tried again by themselves. */
  retried: number;
}

export interface ReplayOutcome {
  arrived: number;
  /** Not tried yet: in line, or held back with their webhook. */
  underWay: number;
  /** Given up, or to be tried again. */
  failed: number;
  /** The webhook was unsubscribed. */
  canceled: number;
  /** Sent again by a later replay, which counts them. */
  superseded: number;
  /** What the failed ones came to, the most frequent first; 20 kinds at most. */
  failures: ReplayOutcomeFailure[];
  /** False: only the first 100,000 are counted. */
  isComplete: boolean;
}

export interface Replay {
  id: string;
  webhookId: string;
  /** `done`: everything selected has been sent on its way. Whether it arrived: see `outcome`. */
  state: 'running' | 'done';
  states: ('waiting' | 'delivered' | 'dead' | 'canceled')[];
  since: string;
  until: string;
  /** Deliveries sent so far: new ones, and those still waiting that became due at once. */
  made: number;
  /** What has become of those. */
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
  since: string;
  until: string;
  states: ('waiting' | 'delivered' | 'dead' | 'canceled')[];
  /** Events that it would send. */
  count: number;
  /** Where each of them stands; of states that are not chosen, how many events choosing only that one would send. */
  byState: ReplayPlanByState;
  /** False: there are more than the 50,000 that are looked at. */
  isComplete: boolean;
}

export interface Inspector {
  id: string;
  /** Takes anything from anybody who knows it. */
  url: string;
  /** What it answers; 410 unsubscribes a webhook, anything but 2xx is tried again. */
  status: number;
  /** How late it answers, in milliseconds. */
  delayMs: number;
  /** Requests so far; the newest 100 are kept. */
  received: number;
  /** Why webhooks of this service will not reach it, by FLOWHOOK_ALLOW_NETWORKS; null: they will. */
  refusal: string | null;
  createdAt: string;
  /** When it goes, with all that it was sent. */
  expiresAt: string;
}

export interface InspectedRequestSignature {
  /** `expired`: valid signature, timestamp too far from now. */
  verdict: 'valid' | 'expired' | 'invalid' | 'absent';
  /** The same in plain words. */
  message: string;
  /** Whose secret made the `v1` signature. */
  webhookId: string | null;
}

export interface InspectedRequest {
  /** Counts from 1. */
  number: number;
  receivedAt: string;
  method: string;
  /** Path and query. */
  path: string;
  /** Names in lower case; what came more than once with commas between. */
  headers: Record<string, string>;
  /** Its first 64 KiB, as UTF-8. */
  body: string;
  /** Of the whole body, as far as it was read. */
  bodyBytes: number;
  /** Whether only the beginning of the body is kept. */
  truncated: boolean;
  signature: InspectedRequestSignature;
}

export interface SystemFinding {
  group: 'machine' | 'settings' | 'files' | 'database' | 'backups' | 'network' | 'work';
  /** The name of the check: it stays the same for ever. */
  check: string;
  status: 'ok' | 'warning' | 'error' | 'skipped';
  /** What was found: a sentence. */
  what: string;
  /** What comes of it, or why it was not checked; null when all is well. */
  why: string | null;
  /** The next step; null when there is none to take. */
  fix: string | null;
  /** How long it took to find out. */
  tookMs: number;
}

export interface SystemChecks {
  /** Whether no finding is an error. */
  ok: boolean;
  examinedAt: string;
  /** How long all of it took. */
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
  bytes: number;
  /** The write-ahead log; null on PostgreSQL. */
  walBytes: number | null;
  /** The version of the tables. */
  schema: number;
}

export interface SystemJobs {
  queued: number;
  running: number;
  retrying: number;
  /** Whether it was counted to the end. */
  complete: boolean;
}

export interface SystemDeliveries {
  waiting: number;
  /** When the one was made that has waited longest. */
  oldestWaitingAt: string | null;
  /** Endpoints that this node leaves alone for now, because they were out of order. */
  openCircuits: number;
  /** Whether it was counted to the end. */
  complete: boolean;
}

export interface SystemEventLoop {
  /** Median. */
  p50Ms: number;
  /** 99th percentile. */
  p99Ms: number;
  /** Longest. */
  maxMs: number;
}

export interface SystemMemory {
  residentBytes: number;
  heapUsedBytes: number;
  heapTotalBytes: number;
  externalBytes: number;
}

export interface SystemSetting {
  /** In `flowhook.yaml`. */
  name: string;
  /** In the environment. */
  variable: string;
  /** `***` for a secret that is set; null: there is none. */
  value: string | null;
  origin: 'flag' | 'environment' | 'file' | 'default';
  /** Such as `--port` or `flowhook.yaml: port`. */
  from: string | null;
  sentence: string;
}

export interface System {
  /** Of Flowhook. */
  version: string;
  /** The version of Node. */
  node: string;
  /** Such as `linux x64`. */
  platform: string;
  startedAt: string;
  /** Since this node was started. */
  uptimeSeconds: number;
  /** What this node does: all, api, worker or sender. */
  role: string;
  /** The name of this node for as long as it runs. */
  nodeId: string;
  /** Under which others reach it, as far as it knows. */
  url: string;
  listening: SystemListening;
  database: SystemDatabase;
  /** Of all teams. */
  jobs: SystemJobs;
  /** Of all teams. */
  deliveries: SystemDeliveries;
  /** How late this node was to whatever was due, in the last whole minute. */
  eventLoop: SystemEventLoop;
  /** Of this node, without the processes of its jobs. */
  memory: SystemMemory;
  /** Every setting with what holds on this node. */
  settings: SystemSetting[];
}

export interface ChangeField {
  key: string;
  value?: unknown;
  previousValue?: unknown;
}

export interface Change {
  type: 'added' | 'changed' | 'removed';
  /** Record identifier. */
  id: string;
  /** The version that brought its last state. */
  version: number;
  /** Of a record that was added. */
  record?: DataRecord;
  /** Of a record that was changed or removed. */
  fields?: ChangeField[];
}

export interface VersionRecords {
  total: number;
  added: number;
  changed: number;
  removed: number;
}

export interface Version {
  number: number;
  /** The job that published it. */
  jobId: string;
  publishedAt: string;
  records: VersionRecords;
}

export interface JobProgress {
  records: number;
  bytes: number;
  /** What the source says of itself. */
  pages: number | null;
  /** What the source says of itself. */
  message: string | null;
}

export interface Job {
  id: string;
  workflowId: string;
  state: 'queued' | 'running' | 'retrying' | 'finished' | 'failed' | 'canceled';
  origin: 'api' | 'schedule' | 'cli' | 'push';
  /** The highest of a team goes first. */
  priority: number;
  /** Attempts started so far. */
  attempt: number;
  /** Of a job that is `retrying`. */
  nextAttemptAt: string | null;
  cancelRequestedAt: string | null;
  /** Why it failed, or why its last attempt did. */
  reason: 'error' | 'source' | 'lost' | 'timeout' | 'memory' | 'output' | 'guard' | 'invalid_record' | null;
  /** Human-readable reason, or who canceled it. */
  error: string | null;
  /** How far the attempt is, or came. */
  progress: JobProgress | null;
  /** The version that it published or found unchanged. */
  version: number | null;
  records: VersionRecords | null;
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

export interface AuditLineActor {
  /** `key`: over the API; `session`: in the dashboard; `command`: at a shell; `file`: by a workflow file; `service`: by a start; `unknown`: who was refused. */
  kind: 'key' | 'session' | 'command' | 'file' | 'service' | 'unknown';
  /** Of the key. */
  id: string | null;
  /** Of the key, or of the system's user. */
  name: string | null;
}

export interface AuditLineTarget {
  kind: 'team' | 'key' | 'workflow' | 'job' | 'webhook' | 'delivery' | 'inspector' | 'backup';
  id: string;
}

export interface AuditLine {
  id: string;
  createdAt: string;
  /** Its slug; null: the instance, as for a team that was deleted. */
  team: string | null;
  /** The operation, such as `webhooks.subscribe` or `records.erase`. */
  action: string;
  actor: AuditLineActor;
  target: AuditLineTarget | null;
  /** Where the request came from. */
  address: string | null;
  /** Its `x-request-id`, which the log tells more about. */
  requestId: string | null;
  summary: string;
  /** Of erasures: what was found where. */
  details: Record<string, unknown>;
}

export interface Key {
  id: string;
  name: string;
  /** How the key begins, to recognise it by. */
  prefix: string;
  scopes: ('read' | 'queue' | 'webhooks' | 'admin' | 'operator')[];
  createdAt: string;
  /** null: never. */
  expiresAt: string | null;
  revokedAt: string | null;
  /** Written once a minute; null: never, since this is noted. */
  lastUsedAt: string | null;
  /** `unused`: not used for 90 days; `expires_soon`: within 14 days, or the last fifth of its life. */
  concern: 'unused' | 'expires_soon' | null;
}

export interface LogLine {
  /** Counts the lines of an attempt from 1; missing numbers were left out. */
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
  everyMs?: number;
  missed: 'run' | 'skip';
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
  /** `cron` and `timezone`, or `everyMs`; `missed` says what becomes of runs that were missed. */
  schedule: WorkflowSchedule | null;
  /** null without a schedule, and while paused. */
  nextRunAt: string | null;
  paused: boolean;
  pausedAt: string | null;
  /** The newest version of its records; 0 before the first. */
  version: number;
  /** How many records that version holds. */
  records: number;
  /** Not yet ended. */
  currentJob: Job | null;
  /** The newest that has ended. */
  lastJob: Job | null;
  /** Where `recentJobs` asked for them: its newest jobs, the newest first. */
  recentJobs?: JobGlance[];
}

/** Exactly what a webhook is sent. */
export type FlowhookEvent = (WorkflowQueuedEvent | WorkflowStartedEvent | WorkflowDataChangeEvent | WorkflowFinishedEvent | WorkflowFailedEvent | WorkflowCanceledEvent | WebhookTestEvent | WebhookPausedEvent) & { workflowId?: string; jobId?: string };

export interface WorkflowQueuedEventData {
  workflowId: string;
  jobId: string;
  state: 'queued';
  queuedAt: string;
}

/** A job was queued for a workflow. */
export interface WorkflowQueuedEvent {
  /** Sent as the header `webhook-id`. The same in every attempt. */
  id: string;
  teamId: string;
  type: 'workflow_queued';
  eventType: 'workflow_queued';
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
  /** Sent as the header `webhook-id`. The same in every attempt. */
  id: string;
  teamId: string;
  type: 'workflow_started';
  eventType: 'workflow_started';
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
  /** URL of the records; reading them requires an API key. */
  dataUrl: string;
  /** 0 if there was none. */
  previousVersion: number;
  differences: WorkflowDataChangeEventDataDifference[];
  /** Whether `differences` is incomplete. */
  truncated: boolean;
  /** URL of all differences; reading them requires an API key. */
  changesUrl: string;
}

/** A run has published records that differ from the previous version. `differences` holds as many as fit; if `truncated` is true, `changesUrl` returns all of them. `workflow_finished` follows. */
export interface WorkflowDataChangeEvent {
  /** Sent as the header `webhook-id`. The same in every attempt. */
  id: string;
  teamId: string;
  type: 'workflow_data_change';
  eventType: 'workflow_data_change';
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowDataChangeEventData;
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
  /** URL of the records; reading them requires an API key. */
  dataUrl: string;
}

/** A job has finished, whether or not it changed any record. */
export interface WorkflowFinishedEvent {
  /** Sent as the header `webhook-id`. The same in every attempt. */
  id: string;
  teamId: string;
  type: 'workflow_finished';
  eventType: 'workflow_finished';
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
  /** Sent as the header `webhook-id`. The same in every attempt. */
  id: string;
  teamId: string;
  type: 'workflow_failed';
  eventType: 'workflow_failed';
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
  /** Sent as the header `webhook-id`. The same in every attempt. */
  id: string;
  teamId: string;
  type: 'workflow_canceled';
  eventType: 'workflow_canceled';
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  workflowId: string;
  jobId: string;
  finishedAt: string;
  data: WorkflowCanceledEventData;
}

export interface WebhookTestEventData {
  webhookId: string;
  message: string;
}

/** A test event. Only the tested webhook receives it, even if not subscribed to this type. */
export interface WebhookTestEvent {
  /** Sent as the header `webhook-id`. The same in every attempt. */
  id: string;
  teamId: string;
  type: 'webhook_test';
  eventType: 'webhook_test';
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

/** A webhook has been paused and receives nothing until it is resumed. Sent to the other webhooks of its workflow. */
export interface WebhookPausedEvent {
  /** Sent as the header `webhook-id`. The same in every attempt. */
  id: string;
  teamId: string;
  type: 'webhook_paused';
  eventType: 'webhook_paused';
  timestamp: string;
  /** Position among the events of the team. */
  sequence: number;
  data: WebhookPausedEventData;
  workflowId?: string;
}

export interface WorkflowDefinition {
  /** Where it is changed. */
  origin: 'file' | 'api';
  /** In the workflows directory. */
  file: string | null;
  /** As it was written: YAML, TypeScript or JSON. */
  text: string | null;
  /** Whether `text` is what runs; null without it. */
  applied: boolean | null;
  /** With every default filled in. */
  definition: Record<string, unknown>;
}

export interface PushResult {
  message: string;
  jobId: string;
  /** The version that it published or found unchanged. */
  version: number;
  records: VersionRecords;
  /** There when the push removed more than half of at least 20 records. */
  warning?: string;
}

export interface EraseFromWorkflowResultFound {
  workflowId: string | null;
  place: string;
  count: number;
}

export interface EraseFromWorkflowResultDisk {
  logEmptied: boolean | null;
  rewritten: boolean;
  tracesLeft: boolean | null;
}

export interface ErasureReport {
  dryRun: boolean;
  /** What was removed or redacted, or would be. */
  found: EraseFromWorkflowResultFound[];
  /** What mentions the person and stays: records of others, definitions. */
  left: EraseFromWorkflowResultFound[];
  suppressed: boolean;
  /** Whether the write-ahead log was emptied, the database rewritten, and traces are left in it; null where that cannot be known: PostgreSQL keeps its log, its replicas and its backups to itself. */
  disk: EraseFromWorkflowResultDisk | null;
  /** How many older copies of the database may hold the person. */
  backups: number;
}

export interface WebhookSettings {
  /** One delivery at a time, in the order of the events; a failing one holds up the rest. */
  ordered?: boolean;
  /** Requests a second at most; null: no limit. */
  ratePerSecond?: number | null;
  timeoutMs?: number;
  /** Sent with every delivery, and never shown again; null: none. */
  headers?: Record<string, string> | null;
}

export interface RotateWebhookSecretResult {
  message: string;
  /** whsec_ and base64. */
  secret: string;
  overlapUntil: string;
}

export interface TestWebhookResult {
  message: string;
  eventId: string;
  deliveryId: string;
}

export interface DeliveryCommand {
  /** For a POSIX shell. */
  command: string;
  /** Headers whose values have to be put in the place of `***`. */
  hidden: string[];
  /** Until then receivers believe the signature. */
  validUntil: string;
}

export interface ReplayDeliveryResult {
  message: string;
  /** The delivery that sends it. */
  deliveryId: string;
  /** Whether a delivery still waited for the event, so that no new one was made. */
  retried: boolean;
  /** How many attempts it has had already. */
  attempt: number;
}

export interface InspectorAnswer {
  /** What it answers; 410 unsubscribes a webhook, anything but 2xx is tried again. */
  status?: number;
  /** How late it answers, in milliseconds. */
  delayMs?: number;
}

export interface EventKind {
  type: 'workflow_queued' | 'workflow_started' | 'workflow_data_change' | 'workflow_finished' | 'workflow_failed' | 'workflow_canceled' | 'webhook_test' | 'webhook_paused';
  /** Other names that a subscription may use, in any letter case. `*` is all types. */
  aliases: string[];
  description: string;
  /** JSON Schema 2020-12 of the whole body. */
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
  /** Whether those that have ended are all counted. */
  complete: boolean;
}

export interface JobLogs {
  attempt: number;
  lines: LogLine[];
  /** The next `after`; null when this was all. */
  next: number | null;
}

export interface MeTeam {
  id: string;
  slug: string;
}

export interface MeKey {
  id: string;
  name: string;
  /** How the key begins, to recognise it by. */
  prefix: string;
  scopes: ('read' | 'queue' | 'webhooks' | 'admin' | 'operator')[];
  /** null: never. */
  expiresAt: string | null;
}

export interface MeLimits {
  /** Items of a list without `limit`. */
  defaultPageSize: number;
  /** The highest `limit` of most lists. */
  maxPageSize: number;
  /** Of a request body; a push may be of any length. */
  maxBodyBytes: number;
  /** Active ones. */
  maxWebhooksPerWorkflow: number;
  /** Of the team; null: any number. */
  maxWorkflows: number | null;
  /** Of the team, over all its workflows; null: any number. */
  maxWebhooks: number | null;
  /** Of the team, neither revoked nor expired; null: any number. */
  maxKeys: number | null;
  /** Of the team, in the current versions of its workflows; null: any number. */
  maxRecords: number | null;
  /** Of the records in the current versions of its workflows, as JSON text in UTF-8; null: any number. */
  maxStoredBytes: number | null;
  /** Of the team at once; others wait; null: any number. */
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
  /** Milliseconds; null when nothing was delivered. */
  p50: number | null;
  /** Milliseconds; null when nothing was delivered. */
  p95: number | null;
}

export interface UsageBucketDeliveries {
  delivered: number;
  failedAttempts: number;
  /** Given up. */
  dead: number;
  /** How long the endpoints took to take what was delivered, to some 10 %. */
  latencyMs: UsageBucketDeliveriesLatencyMs;
}

export interface UsageBucket {
  start: string;
  /** That ended; not of a webhook. */
  jobs?: UsageBucketJobs;
  /** By jobs that finished; not of a webhook. */
  records?: UsageBucketRecords;
  /** Not of a workflow. */
  deliveries?: UsageBucketDeliveries;
}

export interface Usage {
  by: 'hour' | 'day';
  from: string;
  to: string;
  /** All that had happened by then is counted. */
  countedUntil: string;
  buckets: UsageBucket[];
}

export interface MadeKey {
  message: string;
  /** The key itself, shown this once. */
  apiKey: string;
  key: Key;
}

export interface SigningKey {
  id: string;
  type: 'ed25519';
  /** whpk_ and the 32 bytes in base64. */
  key: string;
  createdAt: string;
}
