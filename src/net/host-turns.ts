/** Whose turn it is to ask a host: so many requests at once, so long between them, and none while it asks to rest. */

/** What one caller allows itself; the strictest of those who ask a host at a time decides for it. */
export interface Pace {
  /** Requests that wait for an answer of this host, all callers together. */
  perHost: number;
  /** Between the beginnings of two requests. */
  delayMs: number;
}

export interface HostTurns {
  /** Resolves when it is the caller's turn, with what ends the turn (harmless to call twice). Rejects with the signal's reason. */
  enter(host: string, pace: Pace, signal: AbortSignal): Promise<() => void>;
  /** Nobody asks this host for so long. */
  rest(host: string, ms: number): void;
  /** From now on so long lies between two requests of anybody to this host: it said so itself. */
  slowDown(host: string, delayMs: number): void;
}

interface Waiting {
  pace: Pace;
  go(): void;
}

interface Host {
  /** The paces of those who ask. */
  asking: Set<Pace>;
  /** What the host itself wants to lie between two requests. */
  delayMs: number;
  queue: Waiting[];
  /** When the last request began, and until when the host rests: by the monotonic clock. */
  lastAt: number;
  restsUntil: number;
  timer: NodeJS.Timeout | undefined;
}

/** Hosts that are remembered for their delay or rest; beyond it the idle ones are forgotten. */
const MAX_IDLE_HOSTS = 10_000;

/** Turns within this process. */
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

  /** Lets in whoever may go, in the order in which they came. */
  function admit(host: Host): void {
    clearTimeout(host.timer);
    host.timer = undefined;
    // Whoever is let in goes on counting: it does not change within the loop.
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
      // A pace of its own, for the same one may ask several times.
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

/** Of all who ask the host or wait for it, and of the host itself. */
function strictest({ asking, queue, delayMs }: Host): Pace {
  const strict = { perHost: Number.POSITIVE_INFINITY, delayMs };
  for (const pace of [...asking, ...queue.map(({ pace: one }) => one)]) {
    strict.perHost = Math.min(strict.perHost, pace.perHost);
    strict.delayMs = Math.max(strict.delayMs, pace.delayMs);
  }
  return strict;
}
