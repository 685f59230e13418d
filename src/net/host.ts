/** Hosts and addresses in URLs and settings, lists of networks, and trusted proxies. */
import { isIPv6 } from 'node:net';
import { type Network, rangeOf, toNetwork } from './address-policy.ts';

/** Returns the host of a URL. An IPv6 address is returned without brackets. */
export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

/** Returns whether a host can be reached only from this machine, without a DNS query. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

/** For example `https://[::1]:8443`. */
export function serviceUrl(at: { host: string; port: number; isSecure: boolean }): string {
  return `${at.isSecure ? 'https' : 'http'}://${at.host.includes(':') ? `[${at.host}]` : at.host}:${at.port}`;
}

/**
 * Returns a URL that a browser on this machine can open. The wildcard addresses `0.0.0.0` and `::` are replaced,
 * because not all browsers open them.
 */
export function browsableUrl(at: { host: string; port: number; isSecure: boolean }): string {
  return serviceUrl({ ...at, host: { '0.0.0.0': '127.0.0.1', '::': '::1' }[at.host] ?? at.host });
}

/**
 * Returns `10.1.2.3` for `::ffff:10.1.2.3`, the form in which a dual-stack socket reports an IPv4 client. Other IPv6
 * addresses that contain an IPv4 address (6to4, NAT64) belong to different clients and are returned unchanged.
 */
export function peerAddress(address: string): string {
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '');
}

/**
 * Returns the key under which limits count an address. For an IPv6 address, this is its /64 network, because one
 * subscriber usually has the whole network. For an IPv4 address, even one mapped to IPv6, this is the IPv4 address
 * itself.
 */
export function subscriberOf(address: string): string {
  const peer = peerAddress(address);
  if (!isIPv6(peer) || peer.includes('.')) return peer;
  const [head = '', tail] = (peer.split('%')[0] ?? '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length;
  return [...groups, ...new Array<string>(zeros).fill('0'), ...rest].slice(0, 4).join(':');
}

export interface NetworkList {
  /** The value of the setting. */
  text: string;
  contains(address: string): boolean;
}

/**
 * Parses a comma-separated list of `loopback`, `private`, CIDRs and addresses. Returns undefined if an entry is
 * invalid.
 */
export function parseNetworkList(text: string): NetworkList | undefined {
  const kinds = new Set<string>();
  const networks: Network[] = [];
  for (const entry of text.split(',').map((one) => one.trim().toLowerCase())) {
    if (entry === 'loopback' || entry === 'private') {
      kinds.add(entry);
      continue;
    }
    const network = toNetwork(entry);
    if (network === undefined) return undefined;
    networks.push(network);
  }
  return {
    text,
    contains(address) {
      const judged = peerAddress(address);
      return kinds.has(rangeOf(judged)?.kind ?? '') || networks.some((network) => network.contains(judged));
    },
  };
}

export interface TrustedProxies {
  /**
   * Whether `X-Forwarded-*` headers from this address are trusted.
   *
   * @param hop 0 for the connected peer, 1 for the client that the peer reports, and so on
   */
  trusts(address: string, hop: number): boolean;
  /** Whether every peer is trusted. In this case, anybody who can connect can claim any address. */
  isEverybody: boolean;
}

/**
 * Parses `true` (every peer), `false` (nobody), or a comma-separated list of `loopback`, `private`, CIDRs and addresses.
 *
 * @returns false for `false`; undefined if the text is invalid
 */
export function parseTrustedProxies(text: string): TrustedProxies | false | undefined {
  if (text === 'false') return false;
  // Only the address that the connected peer reports is trusted. Further addresses in the header are claims of the
  // client.
  if (text === 'true') return { trusts: (_address, hop) => hop === 0, isEverybody: true };
  const networks = parseNetworkList(text);
  return networks && { trusts: (address) => networks.contains(address), isEverybody: false };
}
