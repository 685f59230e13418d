/**
 * Names to addresses, without Node's `dns.lookup`: that shares four threads with the file system, so that a few
 * slow names would hold up every other one.
 */
import { Resolver as CaresResolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { performance } from 'node:perf_hooks';
import { candidates, parseHosts, parseResolvConf, type SearchList } from './name-files.ts';

export interface Resolver {
  /**
   * Every address of a name, IPv4 first, at least one. Asks in this order: IP literal (with or without
   * brackets), `localhost`, the hosts file, DNS with the search domains applied.
   *
   * @throws ResolveError with a sentence
   */
  resolve(hostname: string): Promise<string[]>;
}

/** A name has no address, or nobody could say. */
export class ResolveError extends Error {
  override readonly name = 'ResolveError';
}

/** The system's files are read again when what is known of them is older than this. */
const FILES_FRESH_MS = 5_000;
/** One try asks for at most a second, and there are two. */
const TRY_MS = 1_000;
const TRIES = 2;

interface System {
  hosts: Map<string, string[]>;
  search: SearchList;
  resolvConf: string;
  dns: CaresResolver;
}

/** The files and servers are the system's unless a test names its own. */
export function createResolver(
  options: { hostsFile?: string; resolvConfFile?: string; servers?: readonly string[] } = {},
): Resolver {
  const hostsFile = options.hostsFile ?? '/etc/hosts';
  const resolvConfFile = options.resolvConfFile ?? '/etc/resolv.conf';
  let system: Promise<System> | undefined;
  let readAt = 0;

  async function read(before: System | undefined): Promise<System> {
    const [hosts, resolvConf] = await Promise.all([readOr(hostsFile, ''), readOr(resolvConfFile, '')]);
    // A machine that moves to another network gets other servers; c-ares reads them when it is made.
    const dns = before?.resolvConf === resolvConf ? before.dns : createDns(options.servers);
    return { hosts: parseHosts(hosts), search: parseResolvConf(resolvConf), resolvConf, dns };
  }

  async function current(): Promise<System> {
    if (system === undefined || performance.now() - readAt > FILES_FRESH_MS) {
      readAt = performance.now();
      system = read(await system);
    }
    return system;
  }

  return {
    async resolve(hostname) {
      const name = hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
      if (isIP(name) !== 0) return [name];
      const plain = name.replace(/\.$/, '');
      if (plain === 'localhost' || plain.endsWith('.localhost')) return ['127.0.0.1', '::1'];
      const { hosts, search, dns } = await current();
      const listed = hosts.get(plain);
      if (listed !== undefined) return listed.toSorted((a, b) => isIP(a) - isIP(b));
      for (const candidate of candidates(name, search)) {
        const addresses = await ask(dns, candidate);
        if (addresses.length > 0) return addresses;
      }
      throw new ResolveError(`The name ${plain} has no address`);
    },
  };
}

function createDns(servers: readonly string[] | undefined): CaresResolver {
  const dns = new CaresResolver({ timeout: TRY_MS, maxTimeout: TRY_MS, tries: TRIES });
  if (servers !== undefined) dns.setServers(servers);
  return dns;
}

/** Both families at once. No address is an empty list; no answer is an error. */
async function ask(dns: CaresResolver, name: string): Promise<string[]> {
  const answers = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return addresses;
  for (const answer of answers) {
    if (answer.status === 'rejected' && !saysThereIsNone(answer.reason)) {
      throw new ResolveError(`The name ${name} could not be looked up: ${sentence(answer.reason)}`, {
        cause: answer.reason,
      });
    }
  }
  return [];
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
