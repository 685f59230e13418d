/** Hosts and addresses: as URLs and settings name them, lists of networks, and the proxies that say who the client is. */
import { isIPv6 } from 'node:net';
import { type Network, rangeOf, toNetwork } from './address-policy.ts';

/** The host of a URL; IPv6 addresses without brackets. */
export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

/** Whether it names this machine alone, without asking a name server. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

/** For example `https://[::1]:8443`. */
export function serviceUrl(at: { host: string; port: number; isSecure: boolean }): string {
  return `${at.isSecure ? 'https' : 'http'}://${at.host.includes(':') ? `[${at.host}]` : at.host}:${at.port}`;
}

/** A URL that a browser on this machine can open: not all of them open the wildcard addresses `0.0.0.0` and `::`. */
export function browsableUrl(at: { host: string; port: number; isSecure: boolean }): string {
  return serviceUrl({ ...at, host: { '0.0.0.0': '127.0.0.1', '::': '::1' }[at.host] ?? at.host });
}

/**
 * `10.1.2.3` for `::ffff:10.1.2.3`, which is how a dual-stack socket reports an IPv4 client. Other IPv6 addresses with
 * an IPv4 address inside (6to4, NAT64) are different clients and are returned unchanged.
 */
export function peerAddress(address: string): string {
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '');
}

/**
 * The key under which limits count an address: the /64 network of an IPv6 address, because one subscriber usually has
 * all of it; an IPv4 address as it is, also when it is written as IPv6.
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
  /** The setting as it was written. */
  text: string;
  contains(address: string): boolean;
}

/** Parses a comma-separated list of `loopback`, `private`, CIDRs and addresses; undefined when any entry is invalid. */
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
   * Whether `X-Forwarded-*` headers from this address are believed.
   *
   * @param hop 0 for the peer that is connected to us, 1 for the client that the peer reports, and so on
   */
  trusts(address: string, hop: number): boolean;
  /** Whether every peer is believed: then anybody who reaches the port can claim any address. */
  isEverybody: boolean;
}

/**
 * Parses `true` (every peer), `false` (nobody), or a comma-separated list of `loopback`, `private`, CIDRs and addresses.
 *
 * @returns false for `false`; undefined for anything that is invalid
 */
export function parseTrustedProxies(text: string): TrustedProxies | false | undefined {
  if (text === 'false') return false;
  // The peer reports the client; hops further away are claims of the client itself.
  if (text === 'true') return { trusts: (_address, hop) => hop === 0, isEverybody: true };
  const networks = parseNetworkList(text);
  return networks && { trusts: (address) => networks.contains(address), isEverybody: false };
}
