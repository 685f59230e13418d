/** What messages for people contain besides the event: the webhook that sends them, and why a job failed. */
import type { View } from '../../transaction.ts';

/** Number of lines that are read, and of stored rows, which contain several lines each. */
const LAST_LINES = 15;
const LAST_ROWS = 3;

/**
 * Returns the webhook, whose name is null if it has none, and the last lines of the log of a job's last attempt.
 *
 * @param input.jobId null: no lines are read
 */
export async function forPeople(
  view: View,
  { teamId, webhookId, jobId }: { teamId: string; webhookId: string; jobId: string | null },
): Promise<{ webhook: { id: string; name: string | null }; log: string[] }> {
  const [webhook, log] = await Promise.all([
    view.db.get<{ name: string | null }>`
      select name from webhook where team_id = ${teamId} and id = ${webhookId}`,
    jobId === null ? [] : lastLines(view, { teamId, jobId }),
  ]);
  return { webhook: { id: webhookId, name: webhook?.name ?? null }, log };
}

async function lastLines(
  view: View,
  { teamId, jobId }: { teamId: string; jobId: string },
): Promise<string[]> {
  const rows = await view.db.all<{ attempt: number; body: string }>`
    select attempt, body from job_log where team_id = ${teamId} and job_id = ${jobId}
    order by attempt desc, part desc, seq desc limit ${LAST_ROWS}`;
  return rows
    .filter(({ attempt }) => attempt === rows[0]?.attempt)
    .reverse()
    .flatMap(({ body }) => body.split('\n'))
    .slice(-LAST_LINES)
    .map((line) => String((JSON.parse(line) as unknown[])[3]));
}
