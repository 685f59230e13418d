/**
 * Throttles requests by host. Each team has its own limits: a maximum number of concurrent requests and a minimum delay
 * between requests, both set by its workflows, and any pause that the host requested with 429. All teams share only the
 * limits that a host sets for everybody (503, `Crawl-delay`). The requests of one team are sent in order of arrival.
 * Between teams, the team whose last request is oldest goes first.
 */

/** The limits that one caller sets. If several callers of a team request the same host, the strictest limits apply. */
export interface Pace {
  /** Maximum number of concurrent requests of the whole team to this host. At least 1. */
  perHost: number;
  /** Minimum time between the starts of two requests. */
  delayMs: number;
}

/** The throttle for one team. */
export interface HostTurns {
  /**
   * Resolves when the caller may send its request. The result is a function to call when the request is done. Calling
   * this function twice is harmless. Rejects with the signal's reason.
   */
  enter(host: string, pace: Pace, signal: AbortSignal): Promise<() => void>;
  /**
   * Pauses the requests to a host that has asked for a pause. After 429, which is about the credentials of one team,
   * the pause applies to this `team`. After 503, it applies to `all` teams.
   */
  rest(host: string, ms: number, whom: 'team' | 'all'): void;
  /** Sets a minimum delay for all teams, as requested by the host (`Crawl-delay`). */
  slowDown(host: string, delayMs: number): void;
}

/** The limits that a host sets for one team or for all teams, and the time of the last request. Times are monotonic. */
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

/**
 * Beyond this number of hosts, idle hosts are forgotten, including the delay that they requested. A host is idle if it
 * has no requests and no pause.
 */
const MAX_IDLE_HOSTS = 10_000;

/** Beyond this number of teams at one host, teams without a pause and without recent requests are forgotten. */
const MAX_IDLE_VISITORS = 1_000;
const FORGET_VISITOR_MS = 60_000;

/** Creates the throttle of this process. `host-turns-channel.ts` shares it with child processes. */
export function createHostTurns(now: () => number = () => performance.now()): {
  /**
   * Returns the throttle for the callers of one team.
   *
   * @param options.bindsOthers if true, limits that these callers report for all teams apply to all teams; otherwise,
   *   they apply only to the callers' team
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

  /** Starts all requests to this host that may start now. */
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
      // The pace is copied, because a caller may use the same object for several requests, and `current` must contain
      // one object for each request.
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
 * Returns the team that may send the next request, and when. If several teams may send at that time, the team whose
 * last request is oldest goes first.
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

/**
 * Returns the strictest limits among the current and waiting requests of a team, and the minimum delay that the host
 * has requested from this team.
 */
function strictest({ current, queue, delayMs }: Visitor): Pace {
  const strict = { perHost: Number.POSITIVE_INFINITY, delayMs };
  for (const pace of [...current, ...queue.map(({ pace: one }) => one)]) {
    strict.perHost = Math.min(strict.perHost, pace.perHost);
    strict.delayMs = Math.max(strict.delayMs, pace.delayMs);
  }
  return strict;
}
