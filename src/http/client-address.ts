/** The address of the client, for limits and the audit. */
import { isIP, type Socket } from 'node:net';
import { peerAddress } from '../net/host.ts';

/**
 * The client's address as trusted proxies report it, without the port that some of them append and that differs for
 * every connection. Where they report no address, the address of the peer; empty when the peer is gone already.
 *
 * @param input.ip undefined when the connection was closed before anybody asked for it
 */
export function clientAddress({ ip = '', socket }: { ip: string | undefined; socket: Socket }): string {
  const [, inBrackets, beforePort] = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d+)?$/i.exec(ip) ?? [];
  const address = peerAddress(inBrackets ?? beforePort ?? ip);
  return isIP(address) === 0 ? (socket.remoteAddress ?? '') : address;
}
