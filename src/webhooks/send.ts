/** Sends one signed request to a webhook, and returns the result for the log, even if the request fails. */
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';
import { type Attempt, type AttemptDetails, mediaTypeOf } from '../model/delivery.ts';
import { connectionOf } from '../net/dispatcher.ts';
import { retryAfterMs } from '../net/response-headers.ts';
import { HOPS_HEADER } from '../observe/trace-context.ts';
import type { Clock } from '../std/clock.ts';
import { onAbort } from '../std/stop-order.ts';
import { type Destination, loggedResponse } from './destination.ts';
import { EndedError, Exchange, failureOf } from './exchange.ts';
import { type SigningKeys, signatureHeaders } from './sign.ts';

/** What all attempts of a process share. */
interface Sender {
  /** Limits the time to connect. */
  dispatcher: Dispatcher;
  now: Clock;
}

interface Outgoing {
  to: Destination;
  keys: SigningKeys;
  /** Time limit from the start of the attempt to the last byte that is read of the response. */
  timeoutMs: number;
  /** How long the delivery had been due when the attempt started, for the log. */
  queuedMs: number;
  /** Sent as `webhook-id`: the id of the event, or that of a message of its own. */
  messageId: string;
  eventType: string;
  /** 1 for the first attempt. */
  attempt: number;
  /** Sent unchanged. Must not be empty. */
  body: string;
  /** Number of webhooks that led to the event; default: 0. */
  hops?: number;
  /** The trace context of the attempt (W3C Trace Context). */
  traceparent?: string;
  /** Aborts the attempt. The outcome of an aborted attempt proves nothing about the endpoint. */
  signal?: AbortSignal;
}

export interface Sent {
  attempt: Attempt;
  /**
   * The delay that the endpoint asked for (`Retry-After` of a 429 or 503 response, at most 24 hours); null if it asked
   * for none.
   */
  retryAfterMs: number | null;
  /** Scheme, host and port of the endpoint. */
  server: string;
}

const MAX_LOCATION = 200;

/**
 * Sends the request. Errors of the request become the outcome and the error of the attempt.
 *
 * @throws only errors of signing
 */
export async function sendAttempt(sender: Sender, outgoing: Outgoing): Promise<Sent> {
  const { to, messageId: id, body: text, timeoutMs, signal } = outgoing;
  const startedAt = sender.now();
  const startMs = performance.now();
  const timestamp = Math.floor(startedAt / 1000);
  const made: Record<string, string> = {
    ...(await signatureHeaders({ id, timestamp, body: text }, outgoing.keys)),
    'webhook-event': outgoing.eventType,
    'webhook-attempt': String(outgoing.attempt),
    [HOPS_HEADER]: String((outgoing.hops ?? 0) + 1),
  };
  const { traceparent } = outgoing;
  // A custom header named `traceparent` takes precedence.
  if (traceparent !== undefined && !to.headers.includes('traceparent')) made.traceparent = traceparent;
  const body = Buffer.from(text, 'utf8');
  const headers = [...to.headers];
  const type = mediaTypeOf(text);
  if (type !== to.loggedHeaders['content-type']) {
    headers[headers.findIndex((name, at) => at % 2 === 0 && name === 'content-type') + 1] = type;
  }
  for (const [name, value] of Object.entries(made)) headers.push(name, value);
  const exchange = new Exchange(sender.dispatcher, { origin: to.origin, path: to.path, headers, body });
  const timer = setTimeout(
    () => exchange.end(new EndedError('timeout', lateness(exchange, timeoutMs))),
    timeoutMs,
  );
  const settled = signal && onAbort(signal, () => exchange.end(signal.reason as Error));
  let came: Pick<Attempt, 'outcome' | 'error' | 'response'>;
  let failed: unknown;
  try {
    const response = await exchange.response;
    const error = remark(exchange, to.hide);
    came = { outcome: error === null ? 'ok' : 'http', error, response };
  } catch (error) {
    failed = error;
    came = { ...failureOf(error), response: null };
  } finally {
    clearTimeout(timer);
    settled?.();
  }
  const { status } = exchange;
  const asksToWait = status === 429 || status === 503;
  return {
    attempt: {
      startedAt,
      durationMs: Math.round(performance.now() - startMs),
      status,
      outcome: came.outcome,
      error: came.error === null ? null : to.hide(came.error),
      response: came.response === null ? null : to.hide(came.response),
      details: {
        url: to.url,
        requestHeaders: {
          ...to.loggedHeaders,
          'content-type': type,
          'content-length': String(body.length),
          ...made,
        },
        responseHeaders: loggedResponse(exchange.headers, to.hide),
        ...whereAndWhen(exchange, { startMs, queuedMs: outgoing.queuedMs, failed }),
      },
    },
    retryAfterMs: asksToWait ? retryAfterMs(exchange.headers['retry-after'], sender.now()) : null,
    server: to.origin,
  };
}

function lateness({ trace, status }: Exchange, timeoutMs: number): string {
  const within = `within ${timeoutMs / 1_000} s`;
  if (status !== null) return `HTTP ${status}, but the response was not complete ${within}`;
  if (trace.connection)
    return `The request was sent, but the endpoint did not return complete headers ${within}`;
  return `No connection was established ${within}`;
}

function remark({ status, headers }: Exchange, hide: (text: string) => string): string | null {
  if (status === null || (status >= 200 && status < 300)) return null;
  if (status >= 300 && status < 400) {
    const to = headers.location === undefined ? '' : ` to ${hide(headers.location).slice(0, MAX_LOCATION)}`;
    return `HTTP ${status}${to}: redirects are not followed. Subscribe the new URL`;
  }
  if (status === 410) return 'HTTP 410 (Gone): the webhook was unsubscribed';
  return `HTTP ${status}: only 2xx counts as delivered`;
}

function whereAndWhen(
  { trace, firstByteMs }: Exchange,
  input: { startMs: number; queuedMs: number; failed: unknown },
): Pick<AttemptDetails, 'remoteAddress' | 'timing'> {
  const connection = trace.connection ?? connectionOf(input.failed);
  const since = (ms: number | null | undefined): number | null =>
    ms === null || ms === undefined ? null : Math.max(0, Math.round(ms - input.startMs));
  const made = trace.reused ? undefined : connection;
  return {
    remoteAddress: connection?.remoteAddress ?? null,
    timing: {
      queuedMs: Math.round(input.queuedMs),
      dnsMs: since(made?.lookedUpMs),
      connectMs: since(made?.connectedMs),
      tlsMs: since(made?.securedMs),
      firstByteMs: since(firstByteMs),
    },
  };
}
