/**
 * One unfinished job per key: `deduplication` in its simple mode, which answers the id of the job in the way. The
 * connection is that of a producer that would rather fail than wait for a Redis that is away.
 */
import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';

export async function open(path) {
  const queue = new Queue('workflows', {
    connection: { path, enableOfflineQueue: false, maxRetriesPerRequest: 1 },
  });
  await queue.waitUntilReady();
  return {
    async queue(workflowId) {
      const jobId = randomUUID();
      const job = await queue.add('run', { workflowId }, { jobId, deduplication: { id: workflowId } });
      return job.id === jobId ? jobId : undefined;
    },
    stored: () => queue.getWaitingCount(),
    close: () => queue.close(),
  };
}
