/** The observer that counts and measures requests, job attempts and delivery attempts. */
import type { Metrics, Observe } from './metrics.ts';
import type {
  DecisionStepDone,
  DeliveryAttemptDone,
  JobAttemptDone,
  Observer,
  RequestDone,
} from './observer.ts';

/**
 * Upper bounds of buckets in seconds. OpenTelemetry recommends the bounds of `REQUEST` for
 * `http.server.request.duration`.
 */
const REQUEST = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const RUN = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 900, 1_800, 3_600];
const WAIT = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 900, 3_600];
/** The last bound is the maximum timeout of a webhook, 30 s. The default timeout is 15 s. */
const ATTEMPT = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30];

/**
 * Methods that have their own label value. All other methods share one label value, because clients may invent any
 * number of methods.
 */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const OTHER_METHOD = '_OTHER';

/**
 * @param known.eventTypes label values for events; any other type counts as `other`
 * @param known.reasons reasons why a job can fail
 */
export function workMetrics(
  metrics: Metrics,
  known: { eventTypes: readonly string[]; reasons: readonly string[] },
): Required<Observer> {
  const requests = requestMetrics(metrics);
  const jobs = jobMetrics(metrics, known.reasons);
  const deliveries = deliveryMetrics(metrics, known.eventTypes);
  return {
    requestDone: requests,
    jobAttemptDone: jobs,
    deliveryAttemptDone: deliveries,
    decisionStepDone: decisionMetrics(metrics),
  };
}

function requestMetrics(metrics: Metrics) {
  const duration = metrics.histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Duration of requests. The route is a pattern; it is empty if no path matched. Streams and long polls last as long as the client reads.',
    labels: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: REQUEST,
  });
  const aborted = metrics.counter({
    name: 'flowhook_http_aborted_total',
    help: 'Requests whose response was aborted by the client or by an error.',
  });
  const refused = metrics.counter({
    name: 'flowhook_http_refused_total',
    help: 'Requests that were refused, by the code in `x-error-code`.',
    labels: ['code'],
  });
  const sent = metrics.counter({
    name: 'flowhook_http_sent_bytes_total',
    help: 'Bytes sent to clients, including headers.',
  });
  /** Found by a short key, because making the labels of each request takes longer. */
  const known = new Map<string, Observe>();
  const durationOf = ({ method: sent, route, status }: RequestDone): Observe => {
    const method = METHODS.has(sent) ? sent : OTHER_METHOD;
    const key = `${method} ${status} ${route}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const labels = {
      http_request_method: method,
      http_route: route ?? '',
      http_response_status_code: status,
    };
    const made = duration(labels);
    known.set(key, made);
    return made;
  };
  return (done: RequestDone) => {
    durationOf(done)(done.durationMs / 1_000);
    if (done.aborted) aborted();
    if (done.errorCode !== null) refused({ code: done.errorCode });
    if (done.sentBytes > 0) sent({}, done.sentBytes);
  };
}

function jobMetrics(metrics: Metrics, reasons: readonly string[]) {
  const attempts = metrics.counter({
    name: 'flowhook_job_attempts_total',
    help: 'Completed job attempts: `finished`, `failed` (not retried), `retrying` (failed, and will be retried), `canceled`, `interrupted` (released).',
    labels: ['outcome', 'reason'],
  });
  const duration = metrics.histogram({
    name: 'flowhook_job_attempt_duration_seconds',
    help: 'Duration of job attempts.',
    labels: ['outcome'],
    buckets: RUN,
  });
  const wait = metrics.histogram({
    name: 'flowhook_job_wait_seconds',
    help: 'Delay between the due time of job attempts and their start.',
    buckets: WAIT,
  });
  const read = metrics.counter({
    name: 'flowhook_records_read_total',
    help: 'Records read from sources, in attempts that read their source to the end.',
  });
  const quarantined = metrics.counter({
    name: 'flowhook_records_quarantined_total',
    help: 'Records that did not meet an expectation and were set aside, in attempts that published.',
  });
  const published = metrics.counter({
    name: 'flowhook_records_published_total',
    help: 'Records that were added, changed and removed by published versions.',
    labels: ['change'],
  });
  // Counters start at 0, because `rate()` would miss the first increment of a series that starts at 1.
  for (const reason of reasons) attempts({ outcome: 'failed', reason }, 0);
  return (done: JobAttemptDone) => {
    attempts({ outcome: done.outcome, reason: done.reason ?? '' });
    duration({ outcome: done.outcome })(done.durationMs / 1_000);
    wait()(Math.max(0, done.waitedMs) / 1_000);
    if (done.read !== null) {
      read({}, done.read.emitted);
      if (done.published !== null) quarantined({}, done.read.quarantined);
    }
    if (done.published?.outcome !== 'published') return;
    const { added, changed, removed } = done.published.records;
    for (const [change, count] of Object.entries({ added, changed, removed })) published({ change }, count);
  };
}

function deliveryMetrics(metrics: Metrics, eventTypes: readonly string[]) {
  const attempts = metrics.counter({
    name: 'flowhook_delivery_attempts_total',
    help: 'Delivery attempts by outcome (`ok`, `http`: a status other than 2xx, `timeout`, `dns`, `connect`, `tls`, `blocked`, `protocol`) and by the class of the returned status.',
    labels: ['outcome', 'status_class'],
  });
  const duration = metrics.histogram({
    name: 'flowhook_delivery_attempt_duration_seconds',
    help: 'Duration of delivery attempts.',
    labels: ['outcome'],
    buckets: ATTEMPT,
  });
  const latency = metrics.histogram({
    name: 'flowhook_delivery_latency_seconds',
    help: 'Delay between an event and its arrival, for deliveries whose first attempt succeeded.',
    buckets: WAIT,
  });
  const ended = metrics.counter({
    name: 'flowhook_deliveries_total',
    help: 'Ended deliveries, by state: `delivered`, `dead`, `canceled`.',
    labels: ['state', 'event_type'],
  });
  const types = new Set(eventTypes);
  for (const event_type of types) {
    for (const state of ['delivered', 'dead', 'canceled']) ended({ state, event_type }, 0);
  }
  return (done: DeliveryAttemptDone) => {
    const { outcome, status, next } = done;
    attempts({ outcome, status_class: status === null ? '' : `${Math.floor(status / 100)}xx` });
    duration({ outcome })(done.durationMs / 1_000);
    if (next === 'waiting') return;
    ended({ state: next, event_type: types.has(done.eventType) ? done.eventType : 'other' });
    if (next !== 'delivered' || done.attempt !== 1) return;
    latency()(Math.max(0, done.waitedMs + done.durationMs) / 1_000);
  };
}

function decisionMetrics(metrics: Metrics) {
  const decisions = metrics.counter({
    name: 'flowhook_decisions_total',
    help: 'Decisions about events for webhooks with a filter or a format: `sent`, `filtered`, `gathered` (for a digest), `digest` (one has ended, and is sent), or `cooldown` (a message about records whose cooldowns have ended).',
    labels: ['outcome'],
  });
  const evaluations = metrics.counter({
    name: 'flowhook_rule_evaluations_total',
    help: 'Evaluations of filters, usually one for each changed record and webhook.',
  });
  const mistakes = metrics.counter({
    name: 'flowhook_rule_mistakes_total',
    help: 'Decisions whose filter or template failed (`rule`), and evaluations that were ended because they took too long (`time`).',
    labels: ['reason'],
  });
  for (const outcome of ['sent', 'filtered', 'gathered', 'digest', 'cooldown']) decisions({ outcome }, 0);
  for (const reason of ['rule', 'time']) mistakes({ reason }, 0);
  return ({ outcome, evaluated, mistake, cooldownEnded }: DecisionStepDone) => {
    if (outcome !== null) decisions({ outcome: cooldownEnded ? 'cooldown' : outcome });
    if (evaluated > 0) evaluations({}, evaluated);
    if (mistake !== null) mistakes({ reason: mistake });
  };
}
