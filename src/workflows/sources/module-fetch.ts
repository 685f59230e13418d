/** The `ctx.fetch` of modules: the global one, guarded and polite. Loaded when a module first asks for it. */
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { parseAllowNetworks } from '../../net/address-policy.ts';
import { createGuardedDispatcher } from '../../net/dispatcher.ts';
import { createResolver } from '../../net/resolver.ts';

/** Requests that wait for an answer of one host. What has been answered may be read at leisure. */
const MAX_PER_HOST = 4;
/** A host that answers 429 or 503 is asked again so often, and waited for so long at most. */
const MAX_RETRIES = 5;
const MAX_WAIT_MS = 120_000;

interface Host {
  asking: number;
  queue: (() => void)[];
  /** By the monotonic clock: nobody asks it before. */
  notBefore: number;
}

/**
 * @param options.allowNetworks as FLOWHOOK_ALLOW_NETWORKS
 * @param options.signal ends every request
 * @param options.onWait told when a host asks to wait
 */
export function createFetch(options: {
  allowNetworks: string;
  signal: AbortSignal;
  onWait(sentence: string): void;
}): typeof globalThis.fetch {
  const policy = parseAllowNetworks(options.allowNetworks);
  const dispatcher = createGuardedDispatcher({ policy, resolver: createResolver() });
  const agent = userAgent();
  const hosts = new Map<string, Host>();

  async function enter(name: string, signal: AbortSignal): Promise<Host> {
    const host = hosts.get(name) ?? { asking: 0, queue: [], notBefore: 0 };
    hosts.set(name, host);
    if (host.asking < MAX_PER_HOST) host.asking++;
    else await turnOf(host, signal);
    try {
      while (host.notBefore > performance.now()) {
        await wait(host.notBefore - performance.now(), undefined, { signal });
      }
    } catch {
      leave(name, host);
      throw signal.reason;
    }
    return host;
  }

  /** Hands the place on, if somebody waits for it. */
  function leave(name: string, host: Host): void {
    const next = host.queue.shift();
    if (next !== undefined) next();
    else host.asking--;
    if (host.asking === 0 && host.notBefore <= performance.now()) hosts.delete(name);
  }

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
      const host = await enter(url.host, signal);
      let answer: Response;
      let waitMs: number | undefined;
      try {
        // Node's own fetch takes the dispatcher, so that Request, FormData and Response are the global ones.
        answer = await fetch(input, { ...init, headers, signal, dispatcher } as unknown as RequestInit);
        waitMs = retryAfterMs(answer);
        if (waitMs !== undefined) host.notBefore = Math.max(host.notBefore, performance.now() + waitMs);
      } finally {
        leave(url.host, host);
      }
      if (waitMs === undefined || retries === MAX_RETRIES || !canBeRepeated(request, init)) return answer;
      options.onWait(`${url.host} answered ${answer.status} and asks to wait ${Math.ceil(waitMs / 1000)} s`);
      await answer.body?.cancel();
    }
  };
}

/** Resolves when one of the requests before it has handed its place on. */
async function turnOf(host: Host, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  host.queue.push(resolve);
  const giveUp = () => {
    const at = host.queue.indexOf(resolve);
    // If it has its place already, it goes on with an aborted signal and hands that on.
    if (at !== -1) host.queue.splice(at, 1);
    reject(signal.reason);
  };
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  await promise.finally(() => signal.removeEventListener('abort', giveUp));
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
