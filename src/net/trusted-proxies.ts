/** Whose word about the client is believed: what FLOWHOOK_TRUST_PROXY says. */
import { parseNetworkList } from './network-list.ts';

export interface TrustedProxies {
  /**
   * Whether `X-Forwarded-*` headers hold that come from this address.
   *
   * @param hop 0 for who is connected to us, 1 for whom that one has seen, and so on
   */
  trusts(address: string, hop: number): boolean;
  /** Whoever is connected is believed, and so anybody may be who reaches this port. */
  isEverybody: boolean;
}

/**
 * Reads `true` (whoever is connected), `false` (nobody), or a comma list of `loopback`, `private`, CIDRs and addresses.
 * Answers nothing for anything else.
 */
export function parseTrustedProxies(text: string): TrustedProxies | false | undefined {
  if (text === 'false') return false;
  // Whom that one has seen is the client: what stands further away is said by the client itself.
  if (text === 'true') return { trusts: (_address, hop) => hop === 0, isEverybody: true };
  const networks = parseNetworkList(text);
  return networks && { trusts: (address) => networks.contains(address), isEverybody: false };
}
