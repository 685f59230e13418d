/** How the work of a node is observed: log, metrics, and traces if there is an endpoint for them. */
import type { Config } from '../config/config.ts';
import { EVENT_TYPES } from '../model/event.ts';
import { FAILURE_REASONS } from '../model/job.ts';
import type { Logger } from '../observe/log.ts';
import { Metrics } from '../observe/metrics.ts';
import { type Observer, observeAll } from '../observe/observer.ts';
import { startTracing, type Tracing } from '../observe/tracing.ts';
import { wideLines } from '../observe/wide-lines.ts';
import { workMetrics } from '../observe/work-metrics.ts';

export interface Observation {
  observer: Required<Observer>;
  /** Undefined when metrics are off. */
  metrics: Metrics | undefined;
  tracing: Tracing | undefined;
}

export async function startObservation(config: Config, log: Logger): Promise<Observation> {
  const metrics = config.metrics ? new Metrics() : undefined;
  const known = { eventTypes: EVENT_TYPES, reasons: FAILURE_REASONS };
  const counted = metrics === undefined ? [] : [workMetrics(metrics, known)];
  const tracing = config.tracing === null ? undefined : await startTracing(config.tracing, log);
  const traces = tracing === undefined ? [] : [tracing.observer];
  return {
    observer: observeAll([wideLines(log, config.logRequests), ...counted, ...traces]),
    metrics,
    tracing,
  };
}

/** The same observer, which also calls `onVersion` for every version that an attempt of a job has published. */
export function withVersions(
  observer: Observer,
  onVersion: (at: { teamId: string; workflowId: string }) => void,
): Required<Observer> {
  const jobAttemptDone: Observer['jobAttemptDone'] = (done) => {
    if (done.published?.outcome === 'published') onVersion(done);
  };
  return observeAll([observer, { jobAttemptDone }]);
}
