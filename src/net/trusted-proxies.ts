/** Which proxies may say who the client is: FLOWHOOK_TRUST_PROXY. */
import { parseNetworkList } from './network-list.ts';

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
