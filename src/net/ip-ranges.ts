/** The special-purpose ranges of IP addresses, CIDR networks, and IPv4 addresses inside IPv6 ones. */
import { BlockList, isIP } from 'node:net';

/**
 * How the address policy treats a range. `guarded` ranges reach into the machine itself (link-local neighbours and
 * the metadata services of clouds), so only an entry within the range allows them.
 */
export type RangeKind = 'guarded' | 'loopback' | 'private' | 'special';

export interface Range {
  kind: RangeKind;
  /** Completes a sentence: "10.0.0.5 is a private address". */
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
 * The IANA special-purpose registries (RFC 6890 and its updates); guarded ranges first, because the first match
 * counts. Global IPv6 addresses are assigned from 2000::/3 alone: `rangeOf` treats all others as special.
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

const NETWORKS = RANGES.map((found) => ({ found, network: toNetwork(found.cidr) as Network }));
const GLOBAL_IPV6 = toNetwork('2000::/3') as Network;
const NOT_GLOBAL: Range = { kind: 'special', name: 'not a global IPv6 address', cidr: 'outside 2000::/3' };

/** The special range of an address; undefined for a public one. The address must be valid. */
export function rangeOf(address: string): Range | undefined {
  const special = NETWORKS.find(({ network }) => network.contains(address));
  if (special !== undefined) return special.found;
  return isIP(address) === 6 && !GLOBAL_IPV6.contains(address) ? NOT_GLOBAL : undefined;
}

/** Parses an address or a CIDR; undefined if it is neither. */
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
 * The IPv4 address inside an IPv6 address that stands for one: mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96,
 * RFC 6052) and 6to4 (2002::/16, RFC 3056). Connecting to those reaches the IPv4 address.
 */
export function embeddedIpv4(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  const groups = ipv6Groups(address);
  const high = groups.slice(0, 6).join(':');
  if (high === '0:0:0:0:0:65535' || high === '100:65435:0:0:0:0') return dotted(groups[6], groups[7]);
  if (groups[0] === 0x2002) return dotted(groups[1], groups[2]);
  return undefined;
}

/** The eight groups of a valid IPv6 address, without its zone. */
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
