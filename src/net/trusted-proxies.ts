/** Whose word about the client is believed: what FLOWHOOK_TRUST_PROXY says. */
import { type Network, rangeOf, toNetwork } from './ranges.ts';

export interface TrustedProxies {
  /** Whether `X-Forwarded-*` headers hold that come from this address. */
  trusts(address: string): boolean;
  /** Anybody may then say from where they come. */
  isEverybody: boolean;
}

/**
 * Reads `true` (everybody), `false` (nobody), or a comma list of `loopback`, `private`, CIDRs and addresses.
 * Answers nothing for anything else.
 */
export function parseTrustedProxies(text: string): TrustedProxies | false | undefined {
  const entries = text.split(',').map((entry) => entry.trim().toLowerCase());
  if (text === 'false') return false;
  if (text === 'true') return { trusts: () => true, isEverybody: true };
  const kinds = new Set<string>();
  const networks: Network[] = [];
  for (const entry of entries) {
    if (entry === 'loopback' || entry === 'private') {
      kinds.add(entry);
      continue;
    }
    const network = toNetwork(entry);
    if (network === undefined) return undefined;
    networks.push(network);
  }
  return {
    trusts(address) {
      // So comes an IPv4 peer to a socket that takes both. Other addresses with one inside are not that peer.
      const judged = address.replace(/^::ffff:(?=[\d.]+$)/i, '');
      return kinds.has(rangeOf(judged)?.kind ?? '') || networks.some((network) => network.contains(judged));
    },
    isEverybody: false,
  };
}
