/**
 * Throttles requests by host: a limit on concurrent requests, a minimum delay between two, and none during a pause that
 * the host asked for. Waiting callers are let in first come, first served.
 */

/** The limits that one caller sets itself. Among the callers of a host at any time, the strictest limits apply. */
export interface Pace {
  /** Concurrent requests to this host by all callers together, at least 1. */
  perHost: number;
  /** Minimum time between the starts of two requests. */
  delayMs: number;
}

export interface HostTurns {
  /**
   * Resolves when the caller may send its request, with a function to call when it is done (twice is harmless).
   * Rejects with the signal's reason.
   */
  enter(host: string, pace: Pace, signal: AbortSignal): Promise<() => void>;
  /** Lets nobody send to this host for so long. */
  rest(host: string, ms: number): void;
  /** Sets a minimum delay that the host itself asked for (`Crawl-delay`); it applies to every caller from now on. */
  slowDown(host: string, delayMs: number): void;
}

interface Waiting {
  pace: Pace;
  go(): void;
}

interface Host {
  /** The paces of the requests under way. */
  asking: Set<Pace>;
  /** The delay that the host itself asked for. */
  delayMs: number;
  queue: Waiting[];
  /** When the last request started, and the end of the pause: by the monotonic clock. */
  lastAt: number;
  restsUntil: number;
  timer: NodeJS.Timeout | undefined;
}

/** Beyond this many hosts, those without requests and without a pause are forgotten, even if they asked for a delay. */
const MAX_IDLE_HOSTS = 10_000;

/** A throttle within this process; `host-turns-channel.ts` shares it with child processes. */
export function createHostTurns(now: () => number = () => performance.now()): HostTurns {
  const hosts = new Map<string, Host>();

  function hostOf(name: string): Host {
    let host = hosts.get(name);
    if (host === undefined) {
      if (hosts.size >= MAX_IDLE_HOSTS) forgetIdle();
      host = {
        asking: new Set(),
        delayMs: 0,
        queue: [],
        lastAt: Number.NEGATIVE_INFINITY,
        restsUntil: 0,
        timer: undefined,
      };
      hosts.set(name, host);
    }
    return host;
  }

  function forgetIdle(): void {
    for (const [name, host] of hosts) {
      if (host.asking.size === 0 && host.queue.length === 0 && host.restsUntil <= now()) hosts.delete(name);
    }
  }

  /** Lets in everybody who may send now. */
  function admit(host: Host): void {
    clearTimeout(host.timer);
    host.timer = undefined;
    // A caller that is let in still counts, so this does not change within the loop.
    const { perHost, delayMs } = strictest(host);
    for (let next = host.queue[0]; next !== undefined; next = host.queue[0]) {
      if (host.asking.size >= perHost) return;
      const at = Math.max(host.restsUntil, host.lastAt + delayMs);
      const waitMs = at - now();
      if (waitMs > 0) {
        host.timer = setTimeout(() => admit(host), Math.ceil(waitMs));
        return;
      }
      host.queue.shift();
      host.asking.add(next.pace);
      host.lastAt = now();
      next.go();
    }
  }

  return {
    async enter(name, pace, signal) {
      signal.throwIfAborted();
      const host = hostOf(name);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      // A copy: one caller may send several requests with the same object, and the set must hold each of them.
      const waiting: Waiting = { pace: { ...pace }, go: resolve };
      host.queue.push(waiting);
      const giveUp = () => {
        const at = host.queue.indexOf(waiting);
        if (at === -1) return;
        host.queue.splice(at, 1);
        admit(host);
        reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      admit(host);
      await promise.finally(() => signal.removeEventListener('abort', giveUp));
      let over = false;
      return () => {
        if (over) return;
        over = true;
        host.asking.delete(waiting.pace);
        admit(host);
      };
    },
    rest(name, ms) {
      const host = hostOf(name);
      host.restsUntil = Math.max(host.restsUntil, now() + ms);
      admit(host);
    },
    slowDown(name, delayMs) {
      const host = hostOf(name);
      host.delayMs = Math.max(host.delayMs, delayMs);
    },
  };
}

/** The strictest limits among those under way, those waiting and the host itself. */
function strictest({ asking, queue, delayMs }: Host): Pace {
  const strict = { perHost: Number.POSITIVE_INFINITY, delayMs };
  for (const pace of [...asking, ...queue.map(({ pace: one }) => one)]) {
    strict.perHost = Math.min(strict.perHost, pace.perHost);
    strict.delayMs = Math.max(strict.delayMs, pace.delayMs);
  }
  return strict;
}
