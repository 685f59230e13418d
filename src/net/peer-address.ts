/** The address of a peer as its own family writes it. */

/**
 * `10.1.2.3` for `::ffff:10.1.2.3`: so comes an IPv4 peer to a socket that takes both. Other addresses with one inside
 * (6to4, NAT64) are not that peer, and stay as they are.
 */
export function peerAddress(address: string): string {
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '');
}
