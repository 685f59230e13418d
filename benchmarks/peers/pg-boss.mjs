/** One job per key, queued or active: the policy `exclusive` with a `singletonKey`. A pool of ten connections (the default). */
import { PgBoss } from 'pg-boss';

export async function open(connectionString) {
  const boss = new PgBoss({ connectionString });
  boss.on('error', (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
  await boss.start();
  await boss.createQueue('workflows', { policy: 'exclusive' });
  return {
    async queue(workflowId) {
      const id = await boss.send('workflows', { workflowId }, { singletonKey: workflowId });
      return id ?? undefined;
    },
    async stored() {
      const { rows } = await boss.getDb().executeSql('select count(*) as jobs from pgboss.job');
      return rows[0].jobs;
    },
    close: () => boss.stop({ graceful: false }),
  };
}
