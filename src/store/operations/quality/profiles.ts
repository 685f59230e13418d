/** The profiles of the runs that published the versions of a workflow. */
import type { AttemptLease } from '../../../model/job.ts';
import { isWhole } from '../../../model/quality/drift.ts';
import type { Profile } from '../../../model/quality/profile.ts';
import type { Mode, WorkflowRef } from '../../../model/workflow.ts';
import type { Tx, View } from '../../transaction.ts';

/** Number of profiles that a workflow keeps. */
export const KEPT_PROFILES = 500;

/** The profile of the run that published a version. */
export interface VersionProfile extends Profile {
  version: number;
  jobId: string;
  mode: Mode;
  createdAt: number;
}

interface ProfileRow extends Pick<VersionProfile, 'version' | 'jobId' | 'mode' | 'createdAt'> {
  body: string;
}

/** Lists the newest profiles of a workflow, newest first, optionally only of versions below `before`. */
export async function list(
  view: View,
  { teamId, workflowId, limit, before }: WorkflowRef & { limit: number; before?: number | undefined },
): Promise<VersionProfile[]> {
  const rows = await view.db.all<ProfileRow>`
    select version, job_id as "jobId", mode, created_at as "createdAt", body from profile
    where team_id = ${teamId} and workflow_id = ${workflowId}
      and version < ${before ?? Number.MAX_SAFE_INTEGER}::bigint
    order by version desc limit ${limit}`;
  return rows.map(({ body, ...row }) => ({ ...row, ...(JSON.parse(body) as Profile) }));
}

/**
 * Reads the newest profiles that the run of a job is compared with, newest first: those of runs that also emitted the
 * whole data set, or also only changes (`isWhole`).
 */
export async function earlier(
  view: View,
  { held, mode, limit }: { held: AttemptLease; mode: Mode; limit: number },
): Promise<Profile[]> {
  const [one, other]: [Mode, Mode] = isWhole(mode) ? ['replace', 'replace'] : ['upsert', 'append'];
  const rows = await view.db.all<{ body: string }>`
    select body from profile
    where team_id = ${held.teamId}
      and workflow_id = (select workflow_id from job where team_id = ${held.teamId} and id = ${held.jobId})
      and (mode = ${one} or mode = ${other})
    order by version desc limit ${limit}`;
  return rows.map(({ body }) => JSON.parse(body) as Profile);
}

/** Stores the profile of a version, and deletes the one that is now too many. */
export async function addProfile(
  tx: Tx,
  {
    teamId,
    workflowId,
    version,
    jobId,
    mode,
    profile,
  }: WorkflowRef & { version: number; jobId: string; mode: Mode; profile: Profile },
): Promise<void> {
  await tx.db.run`
    insert into profile (team_id, workflow_id, version, job_id, mode, created_at, body)
    values (${teamId}, ${workflowId}, ${version}, ${jobId}, ${mode}, ${tx.now}, ${JSON.stringify(profile)})`;
  if (version <= KEPT_PROFILES) return;
  await tx.db.run`
    delete from profile
    where team_id = ${teamId} and workflow_id = ${workflowId} and version <= ${version - KEPT_PROFILES}`;
}
