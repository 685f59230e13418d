/** The body of each type of event. Times are ISO 8601 in UTC with milliseconds. */
import type { FailureReason, RecordCounts } from './jobs.ts';

/** The fields of every event. Receivers should ignore types and fields that they do not know. */
interface Envelope {
  /** The same for every receiver and every attempt: the header `webhook-id`. */
  id: string;
  teamId: string;
  timestamp: string;
  /** Its place among the events of its team. */
  sequence: number;
}

interface JobEnvelope extends Envelope {
  workflowId: string;
  jobId: string;
  finishedAt?: string;
}

interface JobData {
  workflowId: string;
  jobId: string;
  state: string;
  queuedAt: string;
  startedAt?: string;
  finishedAt?: string;
}

interface Published extends JobData {
  version: number;
  records: RecordCounts;
  dataUrl: string;
}

/** What differs in one record, field by field. */
export interface Difference {
  type: 'added' | 'changed' | 'removed';
  id: string;
  fields: { key: string; value?: unknown; previousValue?: unknown }[];
}

interface DataChange extends Published {
  previousVersion: number;
  differences: Difference[];
  /** Not all differences fit: read `changesUrl`. */
  truncated: boolean;
  changesUrl: string;
}

interface Of<Type extends string, Data> {
  type: Type;
  /** The same as `type`. */
  eventType: Type;
  data: Data;
}

/** Any event: `switch (event.type)` tells what `event.data` is. */
export type FlowhookEvent =
  | (JobEnvelope & Of<'workflow_queued' | 'workflow_started', JobData>)
  | (JobEnvelope & Of<'workflow_data_change', DataChange>)
  | (JobEnvelope & Of<'workflow_finished', Published>)
  | (JobEnvelope & Of<'workflow_failed', JobData & { reason: FailureReason; error: string; attempt: number }>)
  | (JobEnvelope & Of<'workflow_canceled', JobData & { error: string; attempt: number }>)
  | (Envelope & { workflowId?: string; jobId?: undefined } & Of<
        'webhook_test',
        { webhookId: string; message: string }
      >)
  | (Envelope & { workflowId?: string; jobId?: undefined } & Of<
        'webhook_paused',
        { webhookId: string; url: string; pausedAt: string; reason: string }
      >);
