/** What pages ask about workflows, their definitions, records and changes. */
import type { Change } from 'flowhook-client';
import { flowhook } from '../client.ts';
import { ask, listQuery } from './list.ts';

/** With their last runs. @param q only those whose id or name contains this text */
export const workflowList = (q?: string) =>
  listQuery(['workflows', 'list', q ?? null], (cursor, signal) =>
    flowhook.workflows.list({ q, recentJobs: RECENT_JOBS, signal }).page(cursor),
  );

export const RECENT_JOBS = 14;

/** Some workflows without their runs, for the first steps. */
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

/** Every workflow, to choose one from. */
export const workflowNamesQuery = () =>
  ask(['workflows', 'names'], async (signal) => {
    const workflows = await flowhook.workflows.list({ limit: 1_000, signal }).take(1_000);
    return workflows.map(({ id, name }) => ({ value: id, label: name === id ? id : `${name} (${id})` }));
  });

/** Read again by hand: a file may have changed without anything being told of it, and who edits is not disturbed. */
export const definitionQuery = (workflowId: string) =>
  ask(['definition', workflowId], (signal) => flowhook.workflows.definition(workflowId, { signal }), {
    staleTime: 0,
  });

/** Enough for some screens; the service tells fewer where they are large. */
const PAGE = 500;

/** What pages ask about the records of a workflow. */
interface RecordFilter {
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

/** What pages ask about the changes of a version. */
interface ChangeFilter {
  workflowId: string;
  /** The changes that made it. */
  version: number;
  /** Only of these kinds; undefined: all. */
  type?: Change['type'] | undefined;
  /** How many at most. */
  most: number;
}

/** Of a version with more, a kind that stands at its end would be a long wait. */
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
    {
      // What a version changed stays as it is, but for an erasure.
      staleTime: 'static',
    },
  );
