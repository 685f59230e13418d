/** The names that a filter may use: fields of the workflow's records, and data of its events. */
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { NotFound } from '../../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../../client.ts';
import { eventTypesQuery } from '../../../queries/events.ts';
import { ask } from '../../../queries/list.ts';
import type { Known } from './completion.ts';
import { fieldsIn } from './starts.ts';

/** The records of the newest version that are searched for fields. */
const SAMPLED = 50;

/** @param workflowId null means all workflows, whose records may have any fields */
export function useKnownNames(workflowId: string | null): Known {
  const { data: records } = useQuery({ ...sampleQuery(workflowId ?? ''), enabled: workflowId !== null });
  const { data: types } = useQuery(eventTypesQuery());
  return useMemo(() => {
    // No filter decides about digests.
    const decided = (types ?? []).filter(({ type }) => type !== 'webhook_digest');
    const data = decided.map(({ example }) => (example as { data?: object }).data ?? {});
    return {
      fields: workflowId === null ? [] : fieldsIn(records ?? []),
      data: fieldsIn(data).map(({ accessor }) => accessor.replace(/^\./, '')),
    };
  }, [workflowId, records, types]);
}

const sampleQuery = (workflowId: string) =>
  ask(['versions', 'sample', workflowId], async (signal) => {
    try {
      return (await flowhook.workflows.dataPage(workflowId, { limit: SAMPLED, signal })).items;
    } catch (error) {
      if (error instanceof NotFound) return [];
      throw error;
    }
  });
