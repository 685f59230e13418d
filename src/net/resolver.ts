/**
 * Resolves names to addresses. Node's `dns.lookup` is not used, because it shares four threads with the file system: a
 * few slow names would delay everything else.
 */
import { Resolver as CaresResolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { performance } from 'node:perf_hooks';
import { within } from '../std/clock.ts';
import { FairPlaces, NoPlaceError } from '../std/fair-share.ts';

export interface Resolver {
  /**
   * Returns all addresses of a name: at least one, and IPv4 addresses first. The sources are tried in this order: IP
   * literal (with or without brackets), `localhost`, the hosts file, DNS with the search domains. DNS results are
   * cached for their TTL, at most 5 minutes. A name without an address is cached for 30 s, and a failure for 2 s.
   *
   * @param team the team of the caller; teams take turns at the name servers
   * @throws ResolveError
   */
  resolve(hostname: string, team?: string): Promise<string[]>;
}

/** Thrown when a name has no address (`none` is true), or when the lookup failed. The message is a sentence. */
export class ResolveError extends Error {
  override readonly name = 'ResolveError';
  readonly none: boolean;

  constructor(sentence: string, options: { none?: boolean; cause?: unknown } = {}) {
    super(sentence, { cause: options.cause });
    this.none = options.none ?? false;
  }
}

/** Minimum interval between two reads of the hosts file and resolv.conf. */
const FILES_FRESH_MS = 5_000;
/**
 * Limit for one try of a DNS query. Two tries fit into `BUDGET_MS`, so a server that responds only for IPv4 or only for
 * IPv6 still yields these addresses.
 */
const TRY_MS = 800;
const TRIES = 2;
/** Time limit for resolving one name, including all search domains. */
const BUDGET_MS = 2_000;
const MAX_FRESH_MS = 5 * 60_000;
const NONE_FRESH_MS = 30_000;
/**
 * How long a failed lookup is cached. The time is short, because a failing name server may recover at any time. The
 * cache only prevents constant retries.
 */
const FAILED_FRESH_MS = 2_000;

interface System {
  hosts: Map<string, string[]>;
  search: SearchList;
  resolvConf: string;
  dns: CaresResolver;
}

/** @param options used by tests; the default is to use the files and name servers of the system */
export function createResolver(
  options: {
    hostsFile?: string;
    resolvConfFile?: string;
    servers?: readonly string[];
    /** A monotonic clock in milliseconds. */
    now?: () => number;
  } = {},
): Resolver {
  const hostsFile = options.hostsFile ?? '/etc/hosts';
  const resolvConfFile = options.resolvConfFile ?? '/etc/resolv.conf';
  const now = options.now ?? (() => performance.now());
  let system: Promise<System> | undefined;
  let readAt = 0;
  const cache = createLookupCache({
    find: async (name) => withinBudget(name, lookUp(name, await current())),
    failedFreshMs: (error) => (error instanceof ResolveError && error.none ? NONE_FRESH_MS : FAILED_FRESH_MS),
    now,
  });

  async function read(before: System | undefined): Promise<System> {
    const [hosts = '', resolvConf = ''] = await Promise.all(
      [hostsFile, resolvConfFile].map((file) => readFile(file, 'utf8').catch(() => '')),
    );
    // When the machine moves to another network, its name servers change. c-ares reads the name servers only when it is
    // created.
    const dns = before?.resolvConf === resolvConf ? before.dns : createDns(options.servers);
    return { hosts: parseHosts(hosts), search: parseResolvConf(resolvConf), resolvConf, dns };
  }

  async function current(): Promise<System> {
    if (system === undefined || now() - readAt > FILES_FRESH_MS) {
      readAt = now();
      system = read(await system);
    }
    return system;
  }

  return {
    async resolve(hostname, team) {
      const name = hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
      if (isIP(name) !== 0) return [name];
      const plain = name.replace(/\.$/, '');
      if (plain === 'localhost' || plain.endsWith('.localhost')) return ['127.0.0.1', '::1'];
      const { hosts } = await current();
      const listed = hosts.get(plain);
      if (listed !== undefined) return listed.toSorted((a, b) => isIP(a) - isIP(b));
      return cache.get(name, team);
    },
  };
}

async function lookUp(name: string, { search, dns }: System): Promise<Found<string[]>> {
  for (const candidate of candidates(name, search)) {
    const found = await ask(dns, candidate);
    if (found.value.length > 0) return found;
  }
  throw new ResolveError(`The name ${name.replace(/\.$/, '')} has no address`, { none: true });
}

/**
 * Rejects when the lookup takes longer than `BUDGET_MS`. The lookup itself ends a little later, when c-ares gives up.
 */
function withinBudget<T>(name: string, work: Promise<T>): Promise<T> {
  return within(BUDGET_MS, work, () => {
    throw new ResolveError(`The name ${name} could not be looked up within ${BUDGET_MS / 1_000} s`);
  });
}

function createDns(servers: readonly string[] | undefined): CaresResolver {
  const dns = new CaresResolver({ timeout: TRY_MS, maxTimeout: TRY_MS, tries: TRIES });
  if (servers !== undefined) dns.setServers(servers);
  return dns;
}

/** Error codes for names without addresses. */
const NONE_CODES = ['ENOTFOUND', 'ENODATA', 'EBADNAME'];

/**
 * Queries IPv4 and IPv6 addresses concurrently. Returns an empty list if the name has no address.
 *
 * @throws if the lookup failed
 */
async function ask(dns: CaresResolver, name: string): Promise<Found<string[]>> {
  const answers = await Promise.allSettled([
    dns.resolve4(name, { ttl: true }),
    dns.resolve6(name, { ttl: true }),
  ]);
  const records = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (records.length > 0) {
    const ttlMs = Math.min(...records.map((record) => record.ttl)) * 1_000;
    return {
      value: records.map((record) => record.address),
      freshMs: Math.min(MAX_FRESH_MS, ttlMs),
    };
  }
  for (const answer of answers) {
    if (answer.status === 'rejected' && !NONE_CODES.includes(answer.reason.code)) {
      throw new ResolveError(`The name ${name} could not be looked up: ${sentence(answer.reason)}`, {
        cause: answer.reason,
      });
    }
  }
  return { value: [], freshMs: 0 };
}

function sentence(error: NodeJS.ErrnoException): string {
  if (error.code === 'ETIMEOUT') return 'no name server responded in time';
  if (error.code === 'ECONNREFUSED') return 'no name server can be reached';
  if (error.code === 'ESERVFAIL') return 'the name server reported a failure';
  return error.code ?? error.message;
}

/** Returns the addresses of each name in lower case, in the order of the hosts file. */
export function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = withoutComment(line).split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase().replace(/\.$/, '');
      hosts.set(key, [...(hosts.get(key) ?? []), address]);
    }
  }
  return hosts;
}

interface SearchList {
  domains: string[];
  /** A name with at least this many dots is first tried without the search domains. */
  ndots: number;
}

const MAX_DOMAINS = 6;

/** Reads `search`, `domain` (the last line wins) and `options ndots:n`, as described in resolv.conf(5). */
export function parseResolvConf(text: string): SearchList {
  const list: SearchList = { domains: [], ndots: 1 };
  for (const line of text.split('\n')) {
    const [keyword, ...values] = withoutComment(line).split(/\s+/);
    if (keyword === 'search' || keyword === 'domain') {
      list.domains = values.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '');
    }
    const ndots = keyword === 'options' && /(?:^| )ndots:(\d+)/.exec(values.join(' '))?.[1];
    if (ndots) list.ndots = Math.min(15, Number(ndots));
  }
  list.domains = list.domains.slice(0, MAX_DOMAINS);
  return list;
}

/**
 * Returns the full names to query, in order. A name that ends with a dot is absolute, so it is queried without search
 * domains.
 */
export function candidates(name: string, search: SearchList): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = search.domains.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= search.ndots ? [name, ...searched] : [...searched, name];
}

function withoutComment(line: string): string {
  return line.replace(/[#;].*/, '').trim();
}

export interface Found<T> {
  value: T;
  /** How long the value may be reused. If 0, only the calls that already wait for the value may use it. */
  freshMs: number;
}

interface Entry<T> {
  /** The result, or the current lookup. */
  answer: Promise<T>;
  /** When the result expires. Undefined while the lookup is in progress. */
  until: number | undefined;
  /** The outcome of the last completed lookup. Undefined before the first lookup has completed. */
  last: 'found' | 'failed' | undefined;
  /** Adds the lookup to the queue of another team as well, unless the lookup has already started. */
  join(team: string): void;
}

const MAX_ENTRIES = 10_000;
/**
 * Maximum number of concurrent lookups: `PROVEN_PLACES` for names whose last lookup succeeded, and `OTHER_PLACES` for
 * all other names.
 */
const PROVEN_PLACES = 16;
const OTHER_PLACES = 32;
const MAX_WAITING = 10_000;

/**
 * Creates a cache of name lookups. Calls for the same name share one lookup, and the number of concurrent lookups is
 * limited. Teams take turns. Names whose last lookup succeeded have their own limit, so that they never wait for names
 * that get no response.
 *
 * @param options.find looks a name up; an error is cached for `failedFreshMs(error)`
 * @param options.now a monotonic clock in milliseconds
 */
export function createLookupCache<T>(options: {
  find(name: string): Promise<Found<T>>;
  failedFreshMs(error: unknown): number;
  now(): number;
}): {
  /** @param team the team of the caller; calls without a team share one queue */
  get(name: string, team?: string): Promise<T>;
} {
  const { find, failedFreshMs, now } = options;
  const entries = new Map<string, Entry<T>>();
  const proven = new FairPlaces({ places: PROVEN_PLACES, mostWaiting: MAX_WAITING });
  const others = new FairPlaces({ places: OTHER_PLACES, mostWaiting: MAX_WAITING });

  async function look(name: string, entry: Entry<T>): Promise<T> {
    let freshMs = 0;
    try {
      const found = await find(name);
      freshMs = found.freshMs;
      entry.last = 'found';
      return found.value;
    } catch (error) {
      freshMs = failedFreshMs(error);
      entry.last = 'failed';
      throw error;
    } finally {
      entry.until = now() + freshMs;
    }
  }

  function start(name: string, last: Entry<T>['last']): Entry<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const places = last === 'found' ? proven : others;
    const teams = new Set<string>();
    let hasStarted = false;
    const entry: Entry<T> = {
      answer: promise,
      until: undefined,
      last,
      join(team) {
        if (hasStarted || teams.has(team)) return;
        teams.add(team);
        places.take(team, { ahead: last === undefined }).then(
          (leave) => {
            if (hasStarted) return leave();
            hasStarted = true;
            look(name, entry).then(resolve, reject).finally(leave);
          },
          (error: unknown) => {
            teams.delete(team);
            // If the lookup still waits in the queue of another team, this error is ignored.
            if (hasStarted || teams.size > 0) return;
            hasStarted = true;
            // This error is not cached, because the queue may have room for the next call.
            if (entries.get(name) === entry) entries.delete(name);
            const plain = name.replace(/\.$/, '');
            const busy = `The name ${plain} was not looked up because too many lookups are waiting. Try again`;
            reject(error instanceof NoPlaceError ? new ResolveError(busy, { cause: error }) : error);
          },
        );
      },
    };
    // Each caller handles the rejection of the lookup. This handler keeps the cached promise from counting as
    // unhandled.
    promise.catch(() => undefined);
    return entry;
  }

  return {
    get(name, team = '') {
      const known = entries.get(name);
      if (known !== undefined && (known.until === undefined || now() < known.until)) {
        if (known.until === undefined) known.join(team);
        return known.answer;
      }
      const entry = start(name, known?.last);
      // The old entry is deleted first, so that the map stays ordered by the start of the lookup, oldest first.
      entries.delete(name);
      const [oldest] = entries.keys();
      if (oldest !== undefined && entries.size >= MAX_ENTRIES) entries.delete(oldest);
      entries.set(name, entry);
      entry.join(team);
      return entry.answer;
    },
  };
}
