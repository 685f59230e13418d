/**
 * The limit of whole reads, started with `fork`: a Fastify server that sends given files from memory, each under its name,
 * and supports conditional requests. It sends its URL to its parent.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import fastify from 'fastify';

const app = fastify();
for (const path of process.argv.slice(2)) {
  const body = await readFile(path);
  const etag = `"${body.length}"`;
  app.get(`/${basename(path)}`, (request, reply) => {
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').header('etag', etag).send(body);
  });
}
process.once('disconnect', () => app.close());
process.send?.(await app.listen({ port: 0, host: '127.0.0.1' }));
