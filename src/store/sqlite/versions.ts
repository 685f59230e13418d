/** The readable versions of a workflow. */
import type { DataVersion, RecordOperations, VersionSummary } from '../record-operations.ts';
import {
  type DataVersionRow,
  toDataVersion,
  toVersionSummary,
  type VersionSummaryRow,
} from '../version-row.ts';
import type { View } from './transaction.ts';

type Input<Name extends keyof RecordOperations> = Parameters<RecordOperations[Name]>[0];

// Version 0 is empty and has no row.
const VERSION = `
  select wanted.number, workflow.oldest_version as oldest, workflow.erasures,
         coalesce(version.total, 0) as total, coalesce(version.largest, 0) as largest,
         coalesce(version.fields, '[]') as fields
  from workflow
  join (select ? as number) as wanted
  left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                   and version.number = wanted.number
  where workflow.team_id = ? and workflow.id = ? and workflow.archived_at is null
    and wanted.number between workflow.oldest_version and workflow.current_version`;

export function version(view: View, { teamId, workflowId }: Input<'version'>): DataVersion | undefined {
  const row = view.db.get<DataVersionRow>(
    `select workflow.current_version as number, workflow.oldest_version as oldest, workflow.erasures,
            coalesce(version.total, 0) as total, coalesce(version.largest, 0) as largest,
            coalesce(version.fields, '[]') as fields
     from workflow
     left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                      and version.number = workflow.current_version
     where workflow.team_id = ? and workflow.id = ? and workflow.archived_at is null`,
    teamId,
    workflowId,
  );
  return row && toDataVersion(row);
}

export function versionAt(
  view: View,
  { teamId, workflowId, version }: Input<'versionAt'>,
): DataVersion | undefined {
  const row = view.db.get<DataVersionRow>(VERSION, version, teamId, workflowId);
  return row && toDataVersion(row);
}

export function versions(view: View, input: Input<'versions'>): VersionSummary[] {
  return view.db
    .all<VersionSummaryRow>(
      `select version.number, job_id, total, added, changed, removed, published_at
       from version
       join workflow on workflow.team_id = version.team_id and workflow.id = version.workflow_id
       where version.team_id = ? and version.workflow_id = ? and version.number >= workflow.oldest_version
         and version.number < ?
         and workflow.archived_at is null
       order by version.number desc limit ?`,
      input.teamId,
      input.workflowId,
      input.before ?? Number.MAX_SAFE_INTEGER,
      input.limit,
    )
    .map(toVersionSummary);
}
