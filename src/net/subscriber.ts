/** Whom an address belongs to, as far as that can be told: what is counted by address is counted by this. */
import { isIPv6 } from 'node:net';
import { peerAddress } from './peer-address.ts';

/** One subscriber has a whole /64 of IPv6. An IPv4 address stands for itself, also where it is written as an IPv6 one. */
export function subscriberOf(address: string): string {
  const peer = peerAddress(address);
  if (!isIPv6(peer) || peer.includes('.')) return peer;
  const [head = '', tail] = (peer.split('%')[0] ?? '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length;
  return [...groups, ...new Array<string>(zeros).fill('0'), ...rest].slice(0, 4).join(':');
}
