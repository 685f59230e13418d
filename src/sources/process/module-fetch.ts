/**
 * Creates `ctx.fetch` for modules: the global `fetch` with checks of addresses, per-host limits and retries. This file
 * is loaded on first use.
 */
import { Socket } from 'node:net';
import { parseAllowNetworks } from '../../net/address-policy.ts';
import { createGuardedDispatcher } from '../../net/dispatcher.ts';
import type { HostTurns, Pace } from '../../net/host-turns.ts';
import { remoteTurns } from '../../net/host-turns-channel.ts';
import { createResolver } from '../../net/resolver.ts';
import { retryAfterMs } from '../../net/response-headers.ts';
import { USER_AGENT } from '../../std/version.ts';

/**
 * Limits the requests to one host that wait for a response at the same time. Reading the bodies of responses is not
 * limited.
 */
const PACE: Pace = { perHost: 4, delayMs: 0 };
/**
 * `MAX_RETRIES` is the maximum number of retries after 429 or 503, and `MAX_WAIT_MS` the longest `Retry-After` to wait
 * for.
 */
const MAX_RETRIES = 5;
const MAX_WAIT_MS = 120_000;

/**
 * @param options.allowNetworks the allowed addresses, in the syntax of FLOWHOOK_ALLOW_NETWORKS
 * @param options.turns the per-host limits, which all jobs of the server share
 * @param options.signal aborts every request
 * @param options.onWait called with a log line when a host asks to wait
 */
export function createFetch(options: {
  allowNetworks: string;
  turns: HostTurns;
  signal: AbortSignal;
  onWait(sentence: string): void;
}): typeof globalThis.fetch {
  const policy = parseAllowNetworks(options.allowNetworks);
  const dispatcher = createGuardedDispatcher({ policy, resolver: createResolver() });

  return async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const url = new URL(request?.url ?? String(input));
    const signals = [options.signal, init?.signal, request?.signal].filter(
      (one) => one instanceof AbortSignal,
    );
    const signal = AbortSignal.any(signals);
    const headers = new Headers(init?.headers ?? request?.headers);
    if (!headers.has('user-agent')) headers.set('user-agent', USER_AGENT);

    for (let retries = 0; ; retries++) {
      const leave = await options.turns.enter(url.host, PACE, signal);
      let response: Response;
      let waitMs: number | undefined;
      try {
        // The global `fetch` of Node accepts a dispatcher. A module can therefore use the global classes Request,
        // FormData and Response.
        response = await fetch(input, { ...init, headers, signal, dispatcher } as unknown as RequestInit);
        waitMs = waitAskedFor(response);
        if (waitMs !== undefined)
          options.turns.rest(url.host, waitMs, response.status === 429 ? 'team' : 'all');
      } finally {
        leave();
      }
      if (waitMs === undefined || retries === MAX_RETRIES || !canBeRepeated(request, init)) return response;
      options.onWait(
        `${url.host} returned ${response.status} and asks to wait ${Math.ceil(waitMs / 1000)} s`,
      );
      await response.body?.cancel();
    }
  };
}

/**
 * Returns the per-host limits of the server, which this process reaches over descriptor 5. The channel keeps this
 * process alive only while a request waits for its turn. A module that awaits a promise that never settles must still
 * end (see `module-harness.ts`).
 */
export function turnsOfServer(): HostTurns {
  const channel = new Socket({ fd: 5, readable: true, writable: true });
  const turns = remoteTurns(channel);
  let waiting = 0;
  channel.unref();
  return {
    ...turns,
    async enter(host, pace, signal) {
      waiting += 1;
      channel.ref();
      try {
        return await turns.enter(host, pace, signal);
      } finally {
        waiting -= 1;
        if (waiting === 0) channel.unref();
      }
    },
  };
}

/**
 * Returns how many milliseconds a host asks to wait. Undefined if the host does not ask to wait, or asks for more than
 * 2 minutes.
 */
function waitAskedFor(response: Response): number | undefined {
  if (response.status !== 429 && response.status !== 503) return undefined;
  const waitMs = retryAfterMs(response.headers.get('retry-after') ?? undefined, Date.now());
  return waitMs === null || waitMs > MAX_WAIT_MS ? undefined : waitMs;
}

/** Streams can be read only once. */
function canBeRepeated(request: Request | undefined, init: RequestInit | undefined): boolean {
  const body: unknown = init?.body ?? request?.body;
  if (typeof body !== 'object' || body === null) return true;
  return (
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData ||
    body instanceof URLSearchParams
  );
}
