/** The versions of a workflow: their numbers, counts and sizes. */
import type { DataVersion, RecordOperations, VersionSummary } from '../record-operations.ts';
import type { View } from '../sql.ts';
import {
  type DataVersionRow,
  toDataVersion,
  toVersionSummary,
  type VersionSummaryRow,
} from '../version-row.ts';

// Version 0 is empty and has no row.
const VERSION = `
  select wanted.number, workflow.oldest_version as oldest, workflow.erasures,
         coalesce(version.total, 0) as total, coalesce(version.largest, 0) as largest,
         coalesce(version.fields, '[]') as fields
  from workflow
  cross join (select $3::bigint as number) as wanted
  left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                   and version.number = wanted.number
  where workflow.team_id = $1 and workflow.id = $2 and workflow.archived_at is null
    and wanted.number between workflow.oldest_version and workflow.current_version`;

export async function version(
  view: View,
  { teamId, workflowId }: { teamId: string; workflowId: string },
): Promise<DataVersion | undefined> {
  const row = await view.db.get<DataVersionRow>(
    `select workflow.current_version as number, workflow.oldest_version as oldest, workflow.erasures,
            coalesce(version.total, 0) as total, coalesce(version.largest, 0) as largest,
            coalesce(version.fields, '[]') as fields
     from workflow
     left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                      and version.number = workflow.current_version
     where workflow.team_id = $1 and workflow.id = $2 and workflow.archived_at is null`,
    teamId,
    workflowId,
  );
  return row && toDataVersion(row);
}

export async function versionAt(
  view: View,
  { teamId, workflowId, version }: { teamId: string; workflowId: string; version: number },
): Promise<DataVersion | undefined> {
  const row = await view.db.get<DataVersionRow>(VERSION, teamId, workflowId, version);
  return row && toDataVersion(row);
}

export async function versions(
  view: View,
  input: Parameters<RecordOperations['versions']>[0],
): Promise<VersionSummary[]> {
  const rows = await view.db.all<VersionSummaryRow>(
    `select version.number, job_id, total, added, changed, removed, published_at
       from version
       join workflow on workflow.team_id = version.team_id and workflow.id = version.workflow_id
       where version.team_id = $1 and version.workflow_id = $2 and version.number >= workflow.oldest_version
         and version.number < $3::bigint
         and workflow.archived_at is null
       order by version.number desc limit $4`,
    input.teamId,
    input.workflowId,
    input.before ?? Number.MAX_SAFE_INTEGER,
    input.limit,
  );
  return rows.map(toVersionSummary);
}
