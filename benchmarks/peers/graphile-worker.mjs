/**
 * One waiting job per key: `jobKey` in its default mode, in which a second call replaces the waiting job, as its revision
 * shows, instead of being refused. A pool of ten connections (the default).
 */
import { makeWorkerUtils } from 'graphile-worker';

export async function open(connectionString) {
  const utils = await makeWorkerUtils({ connectionString });
  await utils.migrate();
  return {
    async queue(workflowId) {
      const job = await utils.addJob('run', { workflowId }, { jobKey: workflowId });
      return job.revision > 0 ? undefined : String(job.id);
    },
    async stored() {
      const { rows } = await utils.withPgClient((client) =>
        client.query('select count(*) as jobs from graphile_worker.jobs'),
      );
      return rows[0].jobs;
    },
    close: () => utils.release(),
  };
}
