/** How much a team has done. */
import type { CallOptions } from './transport.ts';

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
