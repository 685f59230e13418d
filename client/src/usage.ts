/** Options for reading usage. */
import type { CallOptions } from './transport.ts';

/** By default the usage of the whole team. */
export interface UsageOptions extends CallOptions {
  /** Length of a bucket, in UTC (default: `hour`). */
  by?: 'hour' | 'day' | undefined;
  /** A time in the first bucket (default: 24 hours or 30 days before `to`). */
  from?: Date | string | undefined;
  /** A time after the last bucket (default: now). */
  to?: Date | string | undefined;
  workflowId?: string | undefined;
  webhookId?: string | undefined;
}
