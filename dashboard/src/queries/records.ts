/** What pages ask about the records of a workflow. */
import { flowhook } from '../client.ts';
import { listQuery } from './list.ts';

/** Enough for some screens; the service tells fewer where they are large. */
const PAGE = 500;

export interface RecordFilter {
  workflowId: string;
  /** They are bound to it: of a new version nothing is read before one wants to see it. */
  version: number;
  /** Only those that contain this text. */
  q?: string | undefined;
}

/** `records` is none of the kinds that news name: what a version holds stays as it is. */
export const recordList = ({ workflowId, version, q }: RecordFilter) => ({
  ...listQuery(['records', 'list', workflowId, version, q ?? null], (cursor, signal) =>
    flowhook.workflows.dataPage(workflowId, {
      limit: PAGE,
      q,
      signal,
      // The cursor knows its version.
      ...(cursor === undefined ? { version } : { cursor }),
    }),
  ),
  // With each further page all that came before would be compared with itself.
  structuralSharing: false,
});
