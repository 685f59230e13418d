/** Heartbeats of running attempts. */
import type { Held } from '../../model/job.ts';
import type { JobOperations } from '../job-operations.ts';
import type { Tx } from '../sql.ts';

export async function beat(
  tx: Tx,
  { nodeId, held, leaseMs }: Parameters<JobOperations['beat']>[0],
): Promise<{ lost: Held[]; canceled: Held[] }> {
  const lost: Held[] = [];
  const canceled: Held[] = [];
  for (const { teamId, jobId, attempt } of held) {
    const renewed = await tx.db.get<{ canceledAt: number | null }>(
      `update job set lease_until = $1
       where team_id = $2 and id = $3 and attempt = $4 and state = 'running' and node_id = $5
       returning cancel_requested_at as "canceledAt"`,
      tx.now + leaseMs,
      teamId,
      jobId,
      attempt,
      nodeId,
    );
    if (renewed === undefined) lost.push({ teamId, jobId, attempt });
    else if (renewed.canceledAt !== null) canceled.push({ teamId, jobId, attempt });
  }
  return { lost, canceled };
}
