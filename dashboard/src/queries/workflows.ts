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
  /** Versions (digits) or ISO 8601 times. */
  since: string;
  until: string;
  type?: string | undefined;
  /** Empty for all. */
  fields?: readonly string[];
  /** The maximum number of changes. */
  most: number;
}

/** `from` and `to` are the versions that were compared. */
export const changesQuery = ({ workflowId, since, until, type, fields = [], most }: ChangeFilter) =>
  ask(
    ['versions', 'one', workflowId, 'changes', { since, until, type, fields, most }],
    async (signal) => {
      const opened = await flowhook.workflows.openChanges(workflowId, {
        since,
        until,
        type: type === undefined ? undefined : [type as Change['type']],
        field: fields.length === 0 ? undefined : fields,
        signal,
        // A change of few records among many may take long to be found.
        timeoutMs: PATIENCE_MS,
      });
      const { since: from, until: to } = opened;
      const changes: Change[] = [];
      for await (const change of opened.changes) {
        if (changes.length >= most) return { changes, from, to, isAll: false };
        changes.push(change);
      }
      return { changes, from, to, isAll: true };
    },
    { staleTime: 'static' },
  );

const PATIENCE_MS = 60_000;

/** What versions did with a record, newest first. */
export const recordHistoryList = (workflowId: string, recordId: string) =>
  listQuery(['versions', 'list', workflowId, 'record', recordId], (cursor, signal) =>
    flowhook.workflows.recordHistory(workflowId, recordId, { limit: 50, signal }).page(cursor),
  );

/** The fields of the first records of a version, in order of appearance. */
export const fieldNamesQuery = (workflowId: string, version: number) =>
  ask(
    ['records', 'fields', workflowId, version],
    async (signal) => {
      const { items } = await flowhook.workflows.dataPage(workflowId, { limit: 50, version, signal });
      return [...new Set(items.flatMap((record) => Object.keys(record)))];
    },
    { staleTime: 'static' },
  );

export const quarantineList = (
  workflowId: string,
  filter: { jobId?: string | undefined; field?: string | undefined },
) =>
  listQuery(['quarantine', 'list', workflowId, filter], (cursor, signal) =>
    flowhook.quarantine.list(workflowId, { ...filter, limit: 100, signal }).page(cursor),
  );

export const quarantinedQuery = (workflowId: string, recordId: string) =>
  ask(['quarantine', 'one', workflowId, recordId], (signal) =>
    flowhook.quarantine.get(workflowId, recordId, { signal }),
  );

/** What the records of the newest runs looked like. */
export const profileQuery = (workflowId: string) =>
  ask(['versions', 'one', workflowId, 'profile'], (signal) =>
    flowhook.workflows.profile(workflowId, { versions: 20, signal }),
  );
