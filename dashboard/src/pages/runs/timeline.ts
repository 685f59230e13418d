/** The timeline of a run, from the queue to its deliveries, as bars on one axis. */
import type { Delivery, FlowhookEvent, Job } from 'flowhook-client';
import type { State } from '../../parts/state-badge.tsx';

export interface Bar {
  key: string;
  label: string;
  state: State;
  /** Epoch milliseconds; `toMs` null: it still goes on. */
  fromMs: number;
  toMs: number | null;
  /** Of the delivery that it is. */
  deliveryId?: string;
  /** What came of it, in a few words. */
  outcome?: string | undefined;
}

/**
 * The bars of a run, in their order: waiting, running, and each delivery of what it told.
 *
 * @param deliveries of its events, by the id of the event
 */
export function barsOf(
  job: Job,
  events: readonly FlowhookEvent[],
  deliveries: ReadonlyMap<string, readonly Delivery[]>,
): Bar[] {
  const queuedMs = Date.parse(job.queuedAt);
  const startedMs = ms(job.startedAt);
  const endMs = ms(job.finishedAt);
  const bars: Bar[] = [
    { key: 'queue', label: 'Waited', state: 'queued', fromMs: queuedMs, toMs: startedMs ?? endMs },
  ];
  if (startedMs !== null) {
    const label = job.attempt > 1 ? `Ran, ${job.attempt} attempts` : 'Ran';
    const state = job.finishedAt === null ? 'running' : job.state;
    bars.push({ key: 'run', label, state, fromMs: startedMs, toMs: endMs, outcome: job.reason ?? undefined });
  }
  for (const event of events) {
    for (const delivery of (deliveries.get(event.id) ?? []).toReversed()) bars.push(barOf(event, delivery));
  }
  return bars;
}

function barOf(event: FlowhookEvent, delivery: Delivery): Bar {
  const { state, lastAttempt } = delivery;
  return {
    key: delivery.id,
    label: event.type.replace('workflow_', ''),
    state,
    fromMs: Date.parse(delivery.createdAt),
    toMs: state === 'waiting' ? null : (ms(lastAttempt?.at ?? null) ?? Date.parse(delivery.createdAt)),
    deliveryId: delivery.id,
    outcome: lastAttempt?.message,
  };
}

/** The range of the axis. It ends early enough that the run stays visible beside a delivery that waits for days. */
export function axisOf(bars: readonly Bar[], nowMs: number): { fromMs: number; toMs: number } {
  const fromMs = Math.min(...bars.map((bar) => bar.fromMs));
  const toMs = Math.max(...bars.map((bar) => bar.toMs ?? nowMs));
  const ofRun = bars.filter(({ deliveryId }) => deliveryId === undefined);
  const endMs = Math.max(...ofRun.map((bar) => bar.toMs ?? nowMs));
  return { fromMs, toMs: Math.max(Math.min(toMs, fromMs + 2 * (endMs - fromMs)), fromMs + 1) };
}

function ms(time: string | null): number | null {
  return time === null ? null : Date.parse(time);
}
