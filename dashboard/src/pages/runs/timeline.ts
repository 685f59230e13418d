/** The timeline of a run, from the queue to its deliveries. */
import type { Delivery, FlowhookEvent, Job } from '../../../../client/src/flowhook-client.ts';
import type { State } from '../../parts/state-badge.tsx';

export interface Bar {
  key: string;
  label: string;
  state: State;
  /** In epoch milliseconds; `toMs` is null while the bar is growing. */
  fromMs: number;
  toMs: number | null;
  /** Set if the bar is a delivery. */
  deliveryId?: string;
  /** The message of the last attempt of a delivery. */
  message?: string | undefined;
}

/**
 * The bars of a run in order: queue, run, and the deliveries of its events.
 *
 * @param deliveries by event id
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
    { key: 'queue', label: 'In the queue', state: 'queued', fromMs: queuedMs, toMs: startedMs ?? endMs },
  ];
  if (startedMs !== null) {
    const label = job.attempt > 1 ? `Run (${job.attempt} attempts)` : 'Run';
    const state = job.finishedAt === null ? 'running' : job.state;
    bars.push({ key: 'run', label, state, fromMs: startedMs, toMs: endMs });
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
    label: event.type,
    state,
    fromMs: Date.parse(delivery.createdAt),
    toMs: state === 'waiting' ? null : (ms(lastAttempt?.at ?? null) ?? Date.parse(delivery.createdAt)),
    deliveryId: delivery.id,
    message: lastAttempt?.message,
  };
}

/** The range of the axis: at most twice the run, so that a delivery that waits for days does not hide the run. */
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
