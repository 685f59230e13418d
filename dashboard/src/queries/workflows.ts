/** Queries for workflows, definitions, records and changes. */
import type { Change } from '../../../client/src/flowhook-client.ts';
import { flowhook } from '../client.ts';
import { ask, listQuery } from './list.ts';

/** Workflows with their latest runs. @param q text that the id or name must contain */
export const workflowList = (q?: string) =>
  listQuery(['workflows', 'list', q ?? null], (cursor, signal) =>
    flowhook.workflows.list({ q, recentJobs: RECENT_JOBS, signal }).page(cursor),
  );

export const RECENT_JOBS = 14;

/** A few workflows without runs, for the first steps. */
export const someWorkflows = () =>
  listQuery(['workflows', 'list', 'some'], async (_, signal) => {
    const { items } = await flowhook.workflows.list({ limit: 20, signal }).page();
    return { items, next: null };
  });

export const workflowQuery = (workflowId: string) =>
  ask(['workflows', 'one', workflowId], (signal) => flowhook.workflows.get(workflowId, { signal }));

export const versionList = (workflowId: string) =>
  listQuery(['versions', 'list', workflowId], (cursor, signal) =>
    flowhook.workflows.versions(workflowId, { signal }).page(cursor),
  );

/** The workflows of the team, as options of a select. */
export const workflowNamesQuery = () =>
  ask(['workflows', 'names'], async (signal) => {
    const workflows = await flowhook.workflows.list({ limit: 1_000, signal }).take(1_000);
    return workflows.map(({ id, name }) => ({ value: id, label: name === id ? id : `${name} (${id})` }));
  });

/**
 * Refetched on each visit, because the stream does not report changed files. A refetch in between would disturb an
 * edit.
 */
export const definitionQuery = (workflowId: string) =>
  ask(['definition', workflowId], (signal) => flowhook.workflows.definition(workflowId, { signal }), {
    staleTime: 0,
  });

/** Records per page. The service returns fewer if they are large. */
const PAGE = 500;

interface RecordFilter {
  workflowId: string;
  /** The version is fixed, because a new version is read only when the user wants to see it. */
  version: number;
  /** Text that a record must contain. */
  q?: string | undefined;
}

/** The stream never names the kind `records`, because a version never changes. */
export const recordList = ({ workflowId, version, q }: RecordFilter) => ({
  ...listQuery(['records', 'list', workflowId, version, q ?? null], (cursor, signal) =>
    flowhook.workflows.dataPage(workflowId, {
      limit: PAGE,
      q,
      signal,
      // The cursor includes the version.
      ...(cursor === undefined ? { version } : { cursor }),
    }),
  ),
  // Each further page would otherwise be compared with all pages before it.
  structuralSharing: false,
});

interface ChangeFilter {
  workflowId: string;
  version: number;
  type?: Change['type'] | undefined;
  /** The maximum number of changes. */
  most: number;
}

/** A larger version is not searched to its end for changes of one type: that would take too long. */
export const MAX_SCANNED = 50_000;

export const changesQuery = ({ workflowId, version, type, most }: ChangeFilter) =>
  ask(
    ['versions', 'one', workflowId, 'changes', { version, type, most }],
    async (signal) => {
      const changes: Change[] = [];
      let scanned = 0;
      const all = flowhook.workflows.changes(workflowId, { since: version - 1, until: version, signal });
      for await (const change of all) {
        scanned += 1;
        if (type === undefined || change.type === type) changes.push(change);
        if (changes.length >= most || scanned >= MAX_SCANNED) return { changes, scanned, isAll: false };
      }
      return { changes, scanned, isAll: true };
    },
    { staleTime: 'static' },
  );
