/**
 * A Fastify server with the route `POST /v1/workflows/{workflowId}/queue`, which has the responses and headers of Flowhook but
 * uses another queue, according to its documentation.
 *
 *     node queue-server.mjs nothing|pg-boss|graphile-worker|bullmq [DATABASE]
 *
 * The server sends its URL to its parent. `GET /stored` returns the number of jobs in its database.
 */
import fastify from 'fastify';

const [, , kind, at] = process.argv;
const { queue, stored, close } = await (await import(`./${kind}.mjs`)).open(at);

const app = fastify();
app.post('/v1/workflows/:workflowId/queue', async (request, reply) => {
  const jobId = await queue(request.params.workflowId);
  reply.headers({
    'content-type': 'application/json; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'x-request-id': 'ea6d3271-e061-4963-9bf4-11f5bd962777',
  });
  if (jobId === undefined) {
    reply.code(400).header('x-error-code', 'job_already_queued');
    return '{"error":"A job is already queued for this workflow"}';
  }
  reply.headers({ 'x-job-id': jobId, location: `/v1/jobs/${jobId}` });
  return '{"message":"Job queued"}';
});
app.get('/stored', async () => String(await stored()));

await app.listen({ port: 0, host: '127.0.0.1' });
process.send(`http://127.0.0.1:${app.server.address().port}`);
// Ends when its parent ends.
process.once('disconnect', async () => {
  await app.close();
  await close();
  process.exit();
});
