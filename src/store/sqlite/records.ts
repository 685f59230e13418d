/** Reading published records: which version there is, and its pages. */
import type { DataVersion, RecordPage } from '../store.ts';
import type { View } from './transaction.ts';

export function version(
  view: View,
  { teamId, workflowId }: { teamId: string; workflowId: string },
): DataVersion | undefined {
  const row = view.db.get<DataVersion>(
    `select workflow.current_version as number, workflow.oldest_version as oldest,
            coalesce(version.total, 0) as total, coalesce(version.largest, 0) as largest
     from workflow
     left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
                      and version.number = workflow.current_version
     where workflow.team_id = ? and workflow.id = ? and workflow.archived_at is null`,
    teamId,
    workflowId,
  );
  return row && { ...row };
}

/**
 * The page is put together by SQLite: measured at 2.3–6.9 M records/s against 0.9 M/s row by row. The subquery
 * is a co-routine that hands its rows over in their order, which is the order in which they are joined.
 */
const PAGE = `
  select cast(group_concat(body, ',') as blob) as json, count(*) as count, max(seq) as lastSeq
  from (select seq, body from record
        where workflow = (select number from workflow where team_id = ? and id = ?)
          and seq > ? and added_in <= ? and (removed_in is null or removed_in > ?)
        order by seq limit ?)`;

export function page(
  view: View,
  input: { teamId: string; workflowId: string; version: number; afterSeq: number; rows: number },
): RecordPage {
  const { teamId, workflowId, afterSeq, rows } = input;
  const row = view.db.get<{ json: Uint8Array | null; count: number; lastSeq: number | null }>(
    PAGE,
    teamId,
    workflowId,
    afterSeq,
    input.version,
    input.version,
    rows,
  );
  if (row?.json == null || row.lastSeq === null)
    return { json: new Uint8Array(), count: 0, lastSeq: afterSeq };
  return { json: row.json, count: row.count, lastSeq: row.lastSeq };
}
