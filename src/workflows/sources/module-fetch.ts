/** The `ctx.fetch` of modules: the global one, guarded and polite. Loaded when a module first asks for it. */
import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { parseAllowNetworks } from '../../net/address-policy.ts';
import { createGuardedDispatcher } from '../../net/dispatcher.ts';
import type { HostTurns, Pace } from '../../net/host-turns.ts';
import { remoteTurns } from '../../net/host-turns-channel.ts';
import { createResolver } from '../../net/resolver.ts';

/** Requests that wait for an answer of one host. What has been answered may be read at leisure. */
const PACE: Pace = { perHost: 4, delayMs: 0 };
/** A host that answers 429 or 503 is asked again so often, and waited for so long at most. */
const MAX_RETRIES = 5;
const MAX_WAIT_MS = 120_000;

/**
 * @param options.allowNetworks as FLOWHOOK_ALLOW_NETWORKS
 * @param options.turns at hosts; shared with the other jobs of the server
 * @param options.signal ends every request
 * @param options.onWait told when a host asks to wait
 */
export function createFetch(options: {
  allowNetworks: string;
  turns: HostTurns;
  signal: AbortSignal;
  onWait(sentence: string): void;
}): typeof globalThis.fetch {
  const policy = parseAllowNetworks(options.allowNetworks);
  const dispatcher = createGuardedDispatcher({ policy, resolver: createResolver() });
  const agent = userAgent();

  return async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const url = new URL(request?.url ?? String(input));
    const signals = [options.signal, init?.signal, request?.signal].filter(
      (one) => one instanceof AbortSignal,
    );
    const signal = AbortSignal.any(signals);
    const headers = new Headers(init?.headers ?? request?.headers);
    if (!headers.has('user-agent')) headers.set('user-agent', agent);

    for (let retries = 0; ; retries++) {
      const leave = await options.turns.enter(url.host, PACE, signal);
      let answer: Response;
      let waitMs: number | undefined;
      try {
        // Node's own fetch takes the dispatcher, so that Request, FormData and Response are the global ones.
        answer = await fetch(input, { ...init, headers, signal, dispatcher } as unknown as RequestInit);
        waitMs = retryAfterMs(answer);
        if (waitMs !== undefined) options.turns.rest(url.host, waitMs);
      } finally {
        leave();
      }
      if (waitMs === undefined || retries === MAX_RETRIES || !canBeRepeated(request, init)) return answer;
      options.onWait(`${url.host} answered ${answer.status} and asks to wait ${Math.ceil(waitMs / 1000)} s`);
      await answer.body?.cancel();
    }
  };
}

/**
 * The turns of the server, over descriptor 5. Only who waits for one keeps the process alive: a module that waits for
 * what never comes is told so.
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

/** How long a host wants to be left alone, if it says so and if that is not too long. */
function retryAfterMs(answer: Response): number | undefined {
  if (answer.status !== 429 && answer.status !== 503) return undefined;
  const text = answer.headers.get('retry-after')?.trim() ?? '';
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  if (Number.isNaN(ms) || ms > MAX_WAIT_MS) return undefined;
  return Math.max(ms, 0);
}

/** A stream can be read once only. */
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

function userAgent(): string {
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return `flowhook/${(JSON.parse(manifest) as { version: string }).version}`;
}
