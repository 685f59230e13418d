/**
 * Resolves names to addresses without Node's `dns.lookup`, which shares four threads with the file system: a few slow
 * names would hold up everything else.
 */
import { Resolver as CaresResolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { performance } from 'node:perf_hooks';
import { within } from '../std/clock.ts';
import { FairPlaces, NoPlaceError } from '../std/fair-share.ts';

export interface Resolver {
  /**
   * Every address of a name, IPv4 first, at least one. Tries in this order: IP literal (with or without brackets),
   * `localhost`, the hosts file, DNS with the search domains applied. DNS answers are cached for their TTL, at most
   * 5 minutes; that a name does not exist for 30 s; a failure for 2 s.
   *
   * @param team on whose behalf: teams take turns at the name servers
   * @throws ResolveError with a sentence
   */
  resolve(hostname: string, team?: string): Promise<string[]>;
}

/** A name has no address (`none`), or no name server could say. */
export class ResolveError extends Error {
  override readonly name = 'ResolveError';
  readonly none: boolean;

  constructor(sentence: string, options: { none?: boolean; cause?: unknown } = {}) {
    super(sentence, { cause: options.cause });
    this.none = options.none ?? false;
  }
}

/** How often the system's files are read again at most. */
const FILES_FRESH_MS = 5_000;
/** Two tries fit into the budget: a server that answers for one family only must not cost us the other one. */
const TRY_MS = 800;
const TRIES = 2;
/** Limit for one name, with all search domains. */
const BUDGET_MS = 2_000;
const MAX_FRESH_MS = 5 * 60_000;
const NONE_FRESH_MS = 30_000;
/** Short, because a failing name server may recover at any moment; it only protects against constant retries. */
const FAILED_FRESH_MS = 2_000;

interface System {
  hosts: Map<string, string[]>;
  search: SearchList;
  resolvConf: string;
  dns: CaresResolver;
}

/** @param options for tests; by default the files and name servers of the system are used */
export function createResolver(
  options: {
    hostsFile?: string;
    resolvConfFile?: string;
    servers?: readonly string[];
    /** Milliseconds of any monotonic clock. */
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
    // A machine that moves to another network gets other servers; c-ares reads them only when it is created.
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

/** Rejects in time; the look-up itself ends a little later, when c-ares gives up. */
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

/** What name servers answer when there is no address. */
const NONE_CODES = ['ENOTFOUND', 'ENODATA', 'EBADNAME'];

/** Queries both families at once. Answers an empty list when there is no address; throws when no server says. */
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
  if (error.code === 'ETIMEOUT') return 'no name server answered in time';
  if (error.code === 'ECONNREFUSED') return 'no name server can be reached';
  if (error.code === 'ESERVFAIL') return 'the name server reported a failure';
  return error.code ?? error.message;
}

/** The addresses of each lower-case name, in the order of the file. */
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
  /** A name with at least this many dots is tried as it stands before the search domains. */
  ndots: number;
}

const MAX_DOMAINS = 6;

/** Reads `search`, `domain` (the last one counts) and `options ndots:n`, as described in resolv.conf(5). */
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

/** The full names to query, in order. A name that ends with a dot is absolute: only that one is queried. */
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
  /** How long it may be reused; 0: only by those who are already waiting for it. */
  freshMs: number;
}

interface Entry<T> {
  /** The result, or the look-up under way. */
  answer: Promise<T>;
  /** When the result expires; undefined while the look-up is under way. */
  until: number | undefined;
  /** How the last look-up ended; undefined before the first. */
  last: 'found' | 'failed' | undefined;
  /** Also waits for a place in the line of this team, until the look-up has begun. */
  join(team: string): void;
}

const MAX_ENTRIES = 10_000;
/** Look-ups under way of names that resolved the last time, and of all others. */
const PROVEN_PLACES = 16;
const OTHER_PLACES = 32;
const MAX_WAITING = 10_000;

/**
 * A cache of name look-ups: callers that want the same name share one look-up, and the number under way is bounded.
 * Teams take turns. Names that resolved the last time have places of their own, so that they never wait for names that
 * nobody answers.
 *
 * @param options.find looks a name up; what it throws is cached for `failedFreshMs(error)`
 * @param options.now milliseconds of any monotonic clock
 */
export function createLookupCache<T>(options: {
  find(name: string): Promise<Found<T>>;
  failedFreshMs(error: unknown): number;
  now(): number;
}): {
  /** @param team on whose behalf; calls without one share a line */
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

  function begin(name: string, last: Entry<T>['last']): Entry<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const places = last === 'found' ? proven : others;
    const teams = new Set<string>();
    let hasBegun = false;
    const entry: Entry<T> = {
      answer: promise,
      until: undefined,
      last,
      join(team) {
        if (hasBegun || teams.has(team)) return;
        teams.add(team);
        places.take(team, { ahead: last === undefined }).then(
          (leave) => {
            if (hasBegun) return leave();
            hasBegun = true;
            look(name, entry).then(resolve, reject).finally(leave);
          },
          (error: unknown) => {
            teams.delete(team);
            // It still waits in the line of another team.
            if (hasBegun || teams.size > 0) return;
            hasBegun = true;
            // Not cached: the next call may find room.
            if (entries.get(name) === entry) entries.delete(name);
            const plain = name.replace(/\.$/, '');
            const busy = `The name ${plain} was not looked up: Too many names are waiting to be looked up`;
            reject(error instanceof NoPlaceError ? new ResolveError(busy, { cause: error }) : error);
          },
        );
      },
    };
    // The callers handle the rejection; the cached promise must not count as unhandled.
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
      const entry = begin(name, known?.last);
      // Deleted first, so that the map stays in the order of the look-ups, oldest first.
      entries.delete(name);
      const [oldest] = entries.keys();
      if (oldest !== undefined && entries.size >= MAX_ENTRIES) entries.delete(oldest);
      entries.set(name, entry);
      entry.join(team);
      return entry.answer;
    },
  };
}
