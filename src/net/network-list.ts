/** A list of networks as settings write them, and whether an address lies in one of them. */

import { type Network, rangeOf, toNetwork } from './ip-ranges.ts';
import { peerAddress } from './peer-address.ts';

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
