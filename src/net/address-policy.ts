/**
 * Decides which addresses outgoing connections may use (FLOWHOOK_ALLOW_NETWORKS), and lists the special-purpose address
 * ranges.
 */
import { BlockList, isIP } from 'node:net';

type Verdict = { allowed: true } | { allowed: false; why: string };

export interface AddressPolicy {
  /** The value of FLOWHOOK_ALLOW_NETWORKS. A child process builds the same policy from it. */
  text: string;
  /**
   * Checks an IP address. If the address is refused, `why` names the address, its range and the setting that would
   * allow it.
   */
  verdict(address: string): Verdict;
  /** A list of the allowed addresses, such as `public addresses, loopback, 10.0.0.0/8`. It is printed at startup. */
  description: string;
}

const SETTING = 'FLOWHOOK_ALLOW_NETWORKS';
const MAX_ENTRIES = 1_000;

/**
 * Parses a comma-separated list of `loopback`, `private`, CIDRs and addresses, or `none`. Public addresses are always
 * allowed. Link-local and metadata addresses are allowed only by an address or a CIDR within their range: neither
 * `private` nor a wide CIDR such as 0.0.0.0/0 allows them.
 *
 * @throws Error with a sentence that names the invalid entry
 */
export function parseAllowNetworks(text: string): AddressPolicy {
  const entries = text.split(',').map((entry) => entry.trim().toLowerCase());
  if (entries.length > MAX_ENTRIES) throw new Error(`${SETTING} may have at most ${MAX_ENTRIES} entries`);
  if (entries.includes('none') && entries.length > 1) {
    throw new Error(`${SETTING} must be either \`none\` or a list without \`none\``);
  }
  const tiers = new Set<string>();
  const networks: Network[] = [];
  for (const entry of entries) {
    if (entry === 'none') continue;
    if (entry === 'loopback' || entry === 'private') tiers.add(entry);
    else networks.push(readNetwork(entry));
  }
  const named = [...tiers, ...networks.map((network) => network.cidr)];

  return {
    text,
    description: ['public addresses', ...named].join(', '),
    verdict(address) {
      if (isIP(address) === 0) return { allowed: false, why: `"${address}" is not an IP address` };
      const inner = embeddedIpv4(address);
      const judged = inner ?? address;
      const range = rangeOf(judged);
      if (range === undefined || tiers.has(range.kind)) return { allowed: true };
      const within = networks.filter((network) => range.kind !== 'guarded' || isWithin(network, range));
      if (within.some((network) => network.contains(judged))) return { allowed: true };
      return { allowed: false, why: refusal({ address, inner, range }) };
    },
  };
}

function readNetwork(entry: string): Network {
  const network = toNetwork(entry);
  if (network === undefined) {
    throw new Error(
      `${SETTING} contains "${entry}". Use a comma-separated list of \`loopback\`, \`private\`, addresses such as ` +
        '10.1.2.3 and networks such as 10.0.0.0/8, or only `none`',
    );
  }
  const inner = embeddedIpv4(network.base);
  if (inner !== undefined) {
    throw new Error(
      `${SETTING} contains "${entry}", which represents the IPv4 address ${inner}. Write the IPv4 address instead`,
    );
  }
  return network;
}

function isWithin(network: Network, range: Range): boolean {
  const outer = toNetwork(range.cidr);
  return outer?.contains(network.base) === true && network.prefix >= outer.prefix;
}

function refusal(input: { address: string; inner: string | undefined; range: Range }): string {
  const { range } = input;
  const address = input.inner === undefined ? input.address : `${input.address} (that is ${input.inner})`;
  const remedy =
    range.kind === 'loopback' || range.kind === 'private'
      ? `add \`${range.kind}\` or the address to this setting`
      : range.kind === 'guarded'
        ? 'add exactly this address to this setting'
        : 'add the address or its network to this setting';
  return `${address} is ${range.name} (${range.cidr}), which ${SETTING} does not allow. To allow it, ${remedy}`;
}

/**
 * How the address policy treats a range. `guarded` ranges give access to the machine itself (link-local neighbors and
 * metadata services of clouds), so only an entry within the range allows them.
 */
type RangeKind = 'guarded' | 'loopback' | 'private' | 'special';

interface Range {
  kind: RangeKind;
  /** The words for an address in this range, which complete a sentence such as "10.0.0.5 is a private address". */
  name: string;
  cidr: string;
}

/** A parsed CIDR. */
export interface Network {
  cidr: string;
  base: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
  contains(address: string): boolean;
}

/**
 * The IANA special-purpose registries (RFC 6890 and its updates). Guarded ranges come first, because the first range
 * that matches counts. Global IPv6 addresses are assigned only from 2000::/3, so `rangeOf` treats all other IPv6
 * addresses as special.
 */
const RANGES: readonly Range[] = [
  ...range('guarded', 'a link-local address', ['169.254.0.0/16', 'fe80::/10']),
  ...range('guarded', "a cloud's metadata address", [
    '100.100.100.200/32',
    '168.63.129.16/32',
    '192.0.0.192/32',
    'fd00:ec2::254/128',
    'fd20:ce::254/128',
  ]),
  ...range('loopback', 'a loopback address', ['127.0.0.0/8', '::1/128']),
  ...range('private', 'a private address', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']),
  ...range('special', 'an address of "this network"', ['0.0.0.0/8', '::/128']),
  ...range('special', 'an address shared by a provider', ['100.64.0.0/10']),
  ...range('special', 'an address of protocol assignments', ['192.0.0.0/24', '2001::/23']),
  ...range('special', 'an address for documentation', [
    '192.0.2.0/24',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '2001:db8::/32',
    '3fff::/20',
  ]),
  ...range('special', 'a former 6to4 relay address', ['192.88.99.0/24']),
  ...range('special', 'an address for benchmarks', ['198.18.0.0/15']),
  ...range('special', 'a multicast address', ['224.0.0.0/4', 'ff00::/8']),
  ...range('special', 'a reserved address', ['240.0.0.0/4']),
];

function range(kind: RangeKind, name: string, cidrs: string[]): Range[] {
  return cidrs.map((cidr) => ({ kind, name, cidr }));
}

let parsed: { special: { found: Range; network: Network }[]; globalIpv6: Network } | undefined;

/** Parses the ranges when the first address is checked, because that takes 6 ms and most commands check none. */
function parsedRanges(): NonNullable<typeof parsed> {
  parsed ??= {
    special: RANGES.map((found) => ({ found, network: toNetwork(found.cidr) as Network })),
    globalIpv6: toNetwork('2000::/3') as Network,
  };
  return parsed;
}

const NOT_GLOBAL: Range = { kind: 'special', name: 'not a global IPv6 address', cidr: 'outside 2000::/3' };

/** Returns the special range that contains a valid address. Undefined for a public address. */
export function rangeOf(address: string): Range | undefined {
  const { special, globalIpv6 } = parsedRanges();
  const match = special.find(({ network }) => network.contains(address));
  if (match !== undefined) return match.found;
  return isIP(address) === 6 && !globalIpv6.contains(address) ? NOT_GLOBAL : undefined;
}

/** Parses an address or a CIDR. Returns undefined if the text is neither. */
export function toNetwork(text: string): Network | undefined {
  const [base = '', length, ...rest] = text.split('/');
  const version = isIP(base);
  const bits = version === 4 ? 32 : 128;
  const prefix = length === undefined ? bits : Number(length);
  if (version === 0 || rest.length > 0 || base.includes('%')) return undefined;
  if (length !== undefined && (!/^\d{1,3}$/.test(length) || prefix > bits)) return undefined;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  list.addSubnet(base, prefix, family);
  return {
    cidr: `${base}/${prefix}`,
    base,
    prefix,
    family,
    contains: (address) => isIP(address) === version && list.check(address, family),
  };
}

/**
 * Returns the IPv4 address inside an IPv6 address: mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96, RFC 6052) or 6to4
 * (2002::/16, RFC 3056). Connecting to such an IPv6 address reaches the IPv4 address.
 */
export function embeddedIpv4(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  const groups = ipv6Groups(address);
  const high = groups.slice(0, 6).join(':');
  if (high === '0:0:0:0:0:65535' || high === '100:65435:0:0:0:0') return dotted(groups[6], groups[7]);
  if (groups[0] === 0x2002) return dotted(groups[1], groups[2]);
  return undefined;
}

/** Returns the eight groups of a valid IPv6 address. A zone is ignored. */
function ipv6Groups(address: string): number[] {
  const [text = ''] = address.split('%');
  const [head = '', tail] = text.split('::').map((side) => side.split(':').flatMap(toGroups));
  if (tail === undefined) return head as number[];
  const zeros = new Array<number>(8 - head.length - tail.length).fill(0);
  return [...(head as number[]), ...zeros, ...tail];
}

function toGroups(part: string): number[] {
  if (part === '') return [];
  if (!part.includes('.')) return [Number.parseInt(part, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

function dotted(high = 0, low = 0): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
