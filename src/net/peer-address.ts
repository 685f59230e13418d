/** Normalises the address of a client, and says which subscriber it belongs to. */
import { isIPv6 } from 'node:net';

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
