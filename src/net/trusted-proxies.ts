/** Whose word about the client is believed: what FLOWHOOK_TRUST_PROXY says. */
import { parseNetworkList } from './network-list.ts';

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
  if (text === 'false') return false;
  if (text === 'true') return { trusts: () => true, isEverybody: true };
  const networks = parseNetworkList(text);
  return networks && { trusts: (address) => networks.contains(address), isEverybody: false };
}
