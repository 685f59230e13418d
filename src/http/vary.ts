/** The `vary` header: which headers of a request an answer depends on. */
import type { FastifyReply } from 'fastify';

/** Adds names to those that the answer already has. */
export function addVary(reply: FastifyReply, ...names: readonly string[]): void {
  const known = String(reply.getHeader('vary') ?? '')
    .split(', ')
    .filter(Boolean);
  reply.header('vary', [...new Set([...known, ...names])].join(', '));
}
