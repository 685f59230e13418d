/** Sums up a batch of events and attempts by the rows of the table `usage` that they count towards. */
import type { Attempt } from '../model/delivery.ts';
import type { EventType } from '../model/event.ts';
import type { RecordCounts } from '../model/job.ts';
import {
  addUsage,
  attemptUsage,
  noUsage,
  periodStart,
  USAGE_PERIODS,
  type UsageCounts,
  type UsageKind,
  type UsagePeriod,
} from '../model/usage.ts';

/** The name in `instance` of the time up to which attempts are counted, in epoch milliseconds. */
export const COUNTED_UNTIL = 'usage_counted_until';

/** An event to be counted. `body` is given for `workflow_finished`: it says how many records the run changed. */
export interface CountedEvent {
  sequence: number;
  type: EventType;
  workflowId: string | null;
  body: string | null;
  createdAt: number;
}

/** An attempt to be counted. `webhookId` is null if the delivery is already deleted. */
export interface CountedAttempt extends Pick<Attempt, 'startedAt' | 'durationMs' | 'outcome' | 'status'> {
  teamId: string;
  webhookId: string | null;
  number: number;
}

export interface UsageRow {
  teamId: string;
  kind: UsageKind;
  subject: string;
  period: UsagePeriod;
  start: number;
  counts: UsageCounts;
}

export class UsageTally {
  readonly #rows = new Map<string, UsageRow>();

  get rows(): UsageRow[] {
    return [...this.#rows.values()];
  }

  addEvent(teamId: string, event: CountedEvent): void {
    const { workflowId, createdAt: at } = event;
    const counts = eventUsage(event);
    if (counts === undefined) return;
    this.#add({ teamId, kind: 'team', subject: '', at }, counts);
    if (workflowId !== null) this.#add({ teamId, kind: 'workflow', subject: workflowId, at }, counts);
  }

  addAttempt({ teamId, webhookId, startedAt: at, ...attempt }: CountedAttempt): void {
    this.addDeliveries({ teamId, webhookId, at }, attemptUsage(attempt));
  }

  addDeliveries(
    { teamId, webhookId, at }: { teamId: string; webhookId: string | null; at: number },
    counts: Partial<UsageCounts>,
  ): void {
    this.#add({ teamId, kind: 'team', subject: '', at }, counts);
    if (webhookId !== null) this.#add({ teamId, kind: 'webhook', subject: webhookId, at }, counts);
  }

  #add(
    { at, ...whose }: { teamId: string; kind: UsageKind; subject: string; at: number },
    counts: Partial<UsageCounts>,
  ): void {
    for (const period of USAGE_PERIODS) {
      const start = periodStart(period, at);
      const key = JSON.stringify([whose.teamId, whose.kind, whose.subject, period, start]);
      const row = this.#rows.get(key) ?? { ...whose, period, start, counts: noUsage() };
      addUsage(row.counts, counts);
      this.#rows.set(key, row);
    }
  }
}

function eventUsage({ type, body }: CountedEvent): Partial<UsageCounts> | undefined {
  switch (type) {
    case 'workflow_finished':
      return { finished: 1, ...changedRecords(body) };
    case 'workflow_failed':
      return { failed: 1 };
    case 'workflow_canceled':
      return { canceled: 1 };
    default:
      return undefined;
  }
}

function changedRecords(body: string | null): Partial<UsageCounts> {
  const { data } = JSON.parse(body ?? '{}') as { data?: { records?: RecordCounts } };
  const { added = 0, changed = 0, removed = 0 } = data?.records ?? {};
  return { added, changed, removed };
}
