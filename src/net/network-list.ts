/** A list of networks, as settings name them: which addresses lie within. */
import { peerAddress } from './peer-address.ts';
import { type Network, rangeOf, toNetwork } from './ranges.ts';

export interface NetworkList {
  /** What it was read from. */
  text: string;
  contains(address: string): boolean;
}

/** Reads a comma list of `loopback`, `private`, CIDRs and addresses. Answers nothing for anything else. */
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
