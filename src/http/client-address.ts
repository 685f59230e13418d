/** From which address a request comes, as limits count it and the audit has it. */
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { peerAddress } from '../net/peer-address.ts';

/**
 * The client's address by the word of the proxies that are believed, without the port that some of them put behind it:
 * it is another one for every connection. Who is connected, where that word is no address.
 */
export function clientAddress({ ip, socket }: Pick<FastifyRequest, 'ip' | 'socket'>): string {
  const [, inBrackets, beforePort] = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d+)?$/i.exec(ip) ?? [];
  const address = peerAddress(inBrackets ?? beforePort ?? ip);
  return isIP(address) === 0 ? (socket.remoteAddress ?? '') : address;
}
