/**
 * One unfinished job per key: `deduplication` in its simple mode, which returns the id of the existing job. The connection is
 * set to fail rather than wait for an unavailable Redis.
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
