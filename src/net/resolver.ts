/**
 * Resolves names to addresses without Node's `dns.lookup`, which shares four threads with the file system: a few slow
 * names would hold up everything else.
 */
import { Resolver as CaresResolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { performance } from 'node:perf_hooks';
import { createLookupCache, type Found, LookupsBusyError } from './lookup-cache.ts';
import { candidates, parseHosts, parseResolvConf, type SearchList } from './resolver-files.ts';

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
    const [hosts, resolvConf] = await Promise.all([readOr(hostsFile, ''), readOr(resolvConfFile, '')]);
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
      try {
        return await cache.get(name, team);
      } catch (error) {
        if (!(error instanceof LookupsBusyError)) throw error;
        throw new ResolveError(`The name ${plain} was not looked up: ${error.message}`, { cause: error });
      }
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
async function withinBudget<T>(name: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new ResolveError(`The name ${name} could not be looked up within ${BUDGET_MS / 1_000} s`)),
      BUDGET_MS,
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function createDns(servers: readonly string[] | undefined): CaresResolver {
  const dns = new CaresResolver({ timeout: TRY_MS, maxTimeout: TRY_MS, tries: TRIES });
  if (servers !== undefined) dns.setServers(servers);
  return dns;
}

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
    if (answer.status === 'rejected' && !saysThereIsNone(answer.reason)) {
      throw new ResolveError(`The name ${name} could not be looked up: ${sentence(answer.reason)}`, {
        cause: answer.reason,
      });
    }
  }
  return { value: [], freshMs: 0 };
}

function saysThereIsNone(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ENOTFOUND' || error.code === 'ENODATA' || error.code === 'EBADNAME';
}

function sentence(error: NodeJS.ErrnoException): string {
  if (error.code === 'ETIMEOUT') return 'no name server answered in time';
  if (error.code === 'ECONNREFUSED') return 'no name server can be reached';
  if (error.code === 'ESERVFAIL') return 'the name server reported a failure';
  return error.code ?? error.message;
}

async function readOr(file: string, fallback: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch {
    return fallback;
  }
}
