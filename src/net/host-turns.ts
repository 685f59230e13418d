/**
 * Throttles requests by host. Each team has its own limit on concurrent requests, a minimum delay between requests, as
 * set by its workflows, and the pause that the host requested with 429. All teams share only the limits that a host sets
 * for everybody (503, `Crawl-delay`). Requests of one team go first come, first served; between teams, the team whose
 * last request is oldest goes first.
 */

/** The limits that one caller sets. The strictest limits of a team's current callers of a host apply. */
export interface Pace {
  /** Maximum number of concurrent requests of the whole team to this host, at least 1. */
  perHost: number;
  /** Minimum time between the starts of two requests. */
  delayMs: number;
}

/** The throttle for one team. */
export interface HostTurns {
  /**
   * Resolves when the caller may send its request, with a function to call when the request is done (calling it twice is
   * harmless). Rejects with the signal's reason.
   */
  enter(host: string, pace: Pace, signal: AbortSignal): Promise<() => void>;
  /**
   * Stops requests to a host for some time, because the host asked for it: for this `team` after 429, which concerns its
   * credentials, or for `all` teams after 503.
   */
  rest(host: string, ms: number, whom: 'team' | 'all'): void;
  /** Sets a minimum delay for all teams, as requested by the host (`Crawl-delay`). */
  slowDown(host: string, delayMs: number): void;
}

/** The host's limits for a team or for all teams, and when their last request started. Monotonic times. */
interface HostLimits {
  delayMs: number;
  /** The end of the pause. */
  restsUntil: number;
  lastAt: number;
}

const NO_LIMITS: HostLimits = { delayMs: 0, restsUntil: 0, lastAt: Number.NEGATIVE_INFINITY };

interface Waiting {
  pace: Pace;
  go(): void;
}

/** One team at a host. */
interface Visitor extends HostLimits {
  /** The paces of the current requests. */
  current: Set<Pace>;
  queue: Waiting[];
}

interface Host extends HostLimits {
  visitors: Map<string, Visitor>;
  timer: NodeJS.Timeout | undefined;
}

/** Beyond this number of hosts, hosts without requests and without a pause are forgotten, including their delay. */
const MAX_IDLE_HOSTS = 10_000;

/** Beyond this number of teams at a host, teams without a pause and without recent requests are forgotten. */
const MAX_IDLE_VISITORS = 1_000;
const FORGET_VISITOR_MS = 60_000;

/** Creates the throttle of this process. `host-turns-channel.ts` shares it with child processes. */
export function createHostTurns(now: () => number = () => performance.now()): {
  /**
   * The throttle for the callers of one team.
   *
   * @param options.bindsOthers whether the limits that they report for all teams apply to all teams, or only to theirs
   */
  of(team: string, options: { bindsOthers: boolean }): HostTurns;
} {
  const hosts = new Map<string, Host>();

  function hostOf(name: string): Host {
    let host = hosts.get(name);
    if (host === undefined) {
      if (hosts.size >= MAX_IDLE_HOSTS) forgetIdleHosts();
      host = { ...NO_LIMITS, visitors: new Map(), timer: undefined };
      hosts.set(name, host);
    }
    return host;
  }

  function visitorOf({ visitors }: Host, team: string): Visitor {
    let visitor = visitors.get(team);
    if (visitor === undefined) {
      if (visitors.size >= MAX_IDLE_VISITORS) forgetIdleVisitors(visitors);
      visitor = { ...NO_LIMITS, current: new Set(), queue: [] };
      visitors.set(team, visitor);
    }
    return visitor;
  }

  function forgetIdleHosts(): void {
    for (const [name, { visitors, restsUntil }] of hosts) {
      if (restsUntil <= now() && [...visitors.values()].every(isForgettable)) hosts.delete(name);
    }
  }

  function isForgettable({ current, queue, restsUntil }: Visitor): boolean {
    return current.size + queue.length === 0 && restsUntil <= now();
  }

  function forgetIdleVisitors(visitors: Map<string, Visitor>): void {
    const before = now() - FORGET_VISITOR_MS;
    for (const [team, visitor] of visitors) {
      if (isForgettable(visitor) && visitor.lastAt < before) visitors.delete(team);
    }
  }

  /** Starts all requests that may start now. */
  function admit(host: Host): void {
    clearTimeout(host.timer);
    host.timer = undefined;
    for (;;) {
      const { first, at } = nextOf(host);
      if (first === undefined) return;
      const waitMs = at - now();
      if (waitMs > 0) {
        host.timer = setTimeout(() => admit(host), Math.ceil(waitMs));
        return;
      }
      const next = first.queue.shift() as Waiting;
      first.current.add(next.pace);
      first.lastAt = now();
      host.lastAt = first.lastAt;
      next.go();
    }
  }

  function enter(team: string): HostTurns['enter'] {
    return async (name, pace, signal) => {
      signal.throwIfAborted();
      const host = hostOf(name);
      const visitor = visitorOf(host, team);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      // A copy, because a caller may use the same object for several requests, and the set must contain each of them.
      const waiting: Waiting = { pace: { ...pace }, go: resolve };
      visitor.queue.push(waiting);
      const giveUp = () => {
        const at = visitor.queue.indexOf(waiting);
        if (at === -1) return;
        visitor.queue.splice(at, 1);
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
        visitor.current.delete(waiting.pace);
        admit(host);
      };
    };
  }

  return {
    of: (team, { bindsOthers }) => ({
      enter: enter(team),
      rest(name, ms, whom) {
        const host = hostOf(name);
        const limits = bindsOthers && whom === 'all' ? host : visitorOf(host, team);
        limits.restsUntil = Math.max(limits.restsUntil, now() + ms);
        admit(host);
      },
      slowDown(name, delayMs) {
        const host = hostOf(name);
        const limits = bindsOthers ? host : visitorOf(host, team);
        limits.delayMs = Math.max(limits.delayMs, delayMs);
      },
    }),
  };
}

/**
 * The team that may send first, and when. Of several teams with the same time, the one whose last request is oldest.
 */
function nextOf(host: Host): { first: Visitor | undefined; at: number } {
  let first: Visitor | undefined;
  let firstAt = Number.POSITIVE_INFINITY;
  const openAt = Math.max(host.restsUntil, host.lastAt + host.delayMs);
  for (const visitor of host.visitors.values()) {
    if (visitor.queue.length === 0) continue;
    const { perHost, delayMs } = strictest(visitor);
    if (visitor.current.size >= perHost) continue;
    const at = Math.max(openAt, visitor.restsUntil, visitor.lastAt + delayMs);
    if (at > firstAt || (at === firstAt && visitor.lastAt >= (first as Visitor).lastAt)) continue;
    first = visitor;
    firstAt = at;
  }
  return { first, at: firstAt };
}

/** The strictest limits of a team's current and waiting callers, and of the host for the team. */
function strictest({ current, queue, delayMs }: Visitor): Pace {
  const strict = { perHost: Number.POSITIVE_INFINITY, delayMs };
  for (const pace of [...current, ...queue.map(({ pace: one }) => one)]) {
    strict.perHost = Math.min(strict.perHost, pace.perHost);
    strict.delayMs = Math.max(strict.delayMs, pace.delayMs);
  }
  return strict;
}
