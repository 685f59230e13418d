/** The log lines for requests, job attempts and delivery attempts, and their levels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Logger } from './log.ts';
import type { DeliveryAttemptDone, JobAttemptDone, RequestDone } from './observer.ts';
import { fromTraceparent, UNTRACED } from './trace-context.ts';
import { type LoggedRequests, wideLines } from './wide-lines.ts';

type Line = [level: string, message: string, fields: Record<string, unknown>];

function linesOf(requests?: LoggedRequests) {
  const lines: Line[] = [];
  const at = (level: string) => (fields: object, message: string) => {
    lines.push([level, message, fields as Line[2]]);
  };
  const log: Logger = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => log,
  };
  return { lines, observer: wideLines(log, requests) };
}

const REQUEST: RequestDone = {
  requestId: 'r1',
  method: 'GET',
  route: '/v1/me',
  status: 200,
  startedAt: 0,
  durationMs: 1.26,
  sentBytes: 120,
  teamId: 'team_1',
  keyId: 'key_1',
  errorCode: null,
  aborted: false,
  ...UNTRACED,
};
const JOB: JobAttemptDone = {
  teamId: 'team_1',
  workflowId: 'people',
  jobId: 'job_1',
  attempt: 1,
  origin: 'api',
  sourceType: 'command',
  outcome: 'finished',
  reason: null,
  error: null,
  nextAt: null,
  startedAt: 0,
  durationMs: 12.4,
  waitedMs: 0.4,
  read: { emitted: 2, duplicates: 0, existing: 0, skipped: 0, suppressed: 0, quarantined: 0 },
  published: { outcome: 'published', version: 1, records: { total: 2, added: 2, changed: 0, removed: 0 } },
  ...UNTRACED,
};
const DELIVERY: DeliveryAttemptDone = {
  teamId: 'team_1',
  webhookId: 'wh_1',
  eventId: 'evt_1',
  eventType: 'workflow_finished',
  deliveryId: 'dlv_1',
  attempt: 1,
  server: 'http://127.0.0.1:9000',
  outcome: 'http',
  status: 503,
  error: 'HTTP 503: only 2xx counts as delivered',
  next: 'waiting',
  nextAt: 5_000,
  circuit: 'open',
  restsUntil: 6_000,
  startedAt: 0,
  durationMs: 3,
  waitedMs: 1,
  ...UNTRACED,
};

test('a request has one line with everything that is known about it', () => {
  const { lines, observer } = linesOf();
  const trace = fromTraceparent(`00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`);
  observer.requestDone({ ...REQUEST, status: 404, errorCode: 'job_not_found', trace });
  assert.deepEqual(lines, [
    [
      'info',
      'request.completed',
      {
        method: 'GET',
        route: '/v1/me',
        status: 404,
        ms: 1.3,
        sentBytes: 120,
        teamId: 'team_1',
        keyId: 'key_1',
        requestId: 'r1',
        code: 'job_not_found',
        traceId: 'ab'.repeat(16),
        spanId: 'cd'.repeat(8),
      },
    ],
  ]);
});

test('a setting selects which requests are logged, and health checks never are', () => {
  const logged = (requests: LoggedRequests) => {
    const { lines, observer } = linesOf(requests);
    for (const route of ['/livez', '/readyz', '/metrics']) {
      observer.requestDone({ ...REQUEST, route, status: 503, durationMs: 5_000 });
    }
    observer.requestDone(REQUEST);
    observer.requestDone({ ...REQUEST, durationMs: 1_000 });
    observer.requestDone({ ...REQUEST, status: 404 });
    observer.requestDone({ ...REQUEST, status: 500, aborted: true });
    observer.requestDone({ ...REQUEST, status: 503 });
    return lines.map(([level, , { status, ms }]) => [level, status, ms]);
  };
  assert.deepEqual(logged('all'), [
    ['info', 200, 1.3],
    ['info', 200, 1_000],
    ['info', 404, 1.3],
    ['info', 500, 1.3],
    ['warn', 503, 1.3],
  ]);
  assert.deepEqual(logged('slow'), [
    ['info', 200, 1_000],
    ['warn', 503, 1.3],
  ]);
  assert.deepEqual(logged('errors'), [['warn', 503, 1.3]]);
  assert.deepEqual(logged('off'), []);
});

test('a job attempt is logged with its outcome, and a failure as a warning with the next attempt', () => {
  const { lines, observer } = linesOf();
  observer.jobAttemptDone(JOB);
  const failed = { ...JOB, read: null, published: null, reason: 'error', error: 'It ended with 7' };
  observer.jobAttemptDone({ ...failed, outcome: 'retrying', nextAt: 5_000 });
  observer.jobAttemptDone({ ...failed, outcome: 'failed' });
  observer.jobAttemptDone({ ...JOB, outcome: 'canceled', published: null });
  observer.jobAttemptDone({ ...failed, outcome: 'interrupted', reason: 'fenced', error: null });
  assert.deepEqual(
    lines.map(([level, message, { state, reason, next, version }]) => [
      level,
      message,
      state,
      reason,
      next,
      version,
    ]),
    [
      ['info', 'job.finished', undefined, undefined, undefined, 1],
      ['warn', 'job.failed', 'retrying', 'error', '1970-01-01T00:00:05.000Z', undefined],
      ['warn', 'job.failed', 'failed', 'error', undefined, undefined],
      ['info', 'job.canceled', undefined, undefined, undefined, undefined],
      ['warn', 'job.interrupted', undefined, 'fenced', undefined, undefined],
    ],
  );
});

test('a delivery attempt is logged with its outcome, the next attempt and the state of its lane', () => {
  const { lines, observer } = linesOf();
  observer.deliveryAttemptDone(DELIVERY);
  const well = { outcome: 'ok', status: 204, error: null, nextAt: null, circuit: null, restsUntil: null };
  observer.deliveryAttemptDone({ ...DELIVERY, ...well, next: 'delivered' });
  const [, , failed] = lines[0] as Line;
  assert.deepEqual(
    [failed.next, failed.breaker, failed.restsUntil],
    ['1970-01-01T00:00:05.000Z', 'open', '1970-01-01T00:00:06.000Z'],
  );
  const [level, message, delivered] = lines[1] as Line;
  assert.deepEqual([level, message, delivered.next], ['info', 'delivery.attempted', 'delivered']);
  assert.ok(!('breaker' in delivered) && !('error' in delivered));
});
