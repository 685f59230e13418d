/** What pages ask about the changes of a version. */
import { queryOptions } from '@tanstack/react-query';
import type { Change } from 'flowhook-client';
import { flowhook } from '../client.ts';

export interface ChangeFilter {
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
  queryOptions({
    queryKey: ['versions', 'one', workflowId, 'changes', { version, type, most }],
    queryFn: async ({ signal }) => {
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
    // What a version changed stays as it is, but for an erasure.
    staleTime: 'static',
  });
