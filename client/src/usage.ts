/** How much a team has done. */
import type { CallOptions } from './transport.ts';

/** One hour or day. A workflow has no `deliveries`, a webhook nothing else. */
export interface UsageBucket {
  /** Its beginning: ISO 8601 in UTC. */
  start: string;
  /** That ended in it. */
  jobs?: { finished: number; failed: number; canceled: number };
  /** What the jobs that finished changed. */
  records?: { added: number; changed: number; removed: number };
  deliveries?: {
    delivered: number;
    failedAttempts: number;
    /** Given up. */
    dead: number;
    /** Response times in milliseconds, accurate to about 10 %; null when nothing was delivered. */
    latencyMs: { p50: number | null; p95: number | null };
  };
}

export interface Usage {
  by: 'hour' | 'day';
  from: string;
  to: string;
  /** Everything before this time is counted. */
  countedUntil: string;
  /** The oldest first, without gaps. */
  buckets: UsageBucket[];
}

/** Of the team, unless a workflow or a webhook is named. */
export interface UsageOptions extends CallOptions {
  /** `hour` unless told; hours and days are those of UTC. */
  by?: 'hour' | 'day' | undefined;
  /** A time in the first bucket; 24 hours or 30 days before `to` unless told. */
  from?: Date | string | undefined;
  /** A time after the last bucket; now unless told. */
  to?: Date | string | undefined;
  workflowId?: string | undefined;
  webhookId?: string | undefined;
}
