/** What pages ask about a team and its instance: keys, audit, usage, how the service stands. */
import { flowhook } from '../client.ts';
import { ask, type FilterOf, filledPage, listQuery } from './list.ts';

export const keyList = () =>
  listQuery(['keys', 'list'], (cursor, signal) => flowhook.keys.list({ limit: 1_000, signal }).page(cursor));

/** For a choice among them. */
export const keyNamesQuery = () =>
  ask(['keys', 'names'], async (signal) => {
    const keys = await flowhook.keys.list({ limit: 1_000, signal }).take(1_000);
    return keys.map(({ id, name, prefix }) => ({ value: id, label: `${name} ${prefix}…`.trim() }));
  });

export const auditList = (filter: FilterOf<typeof flowhook.audit>) =>
  listQuery(
    ['audit', 'list', filter],
    (cursor, signal) => filledPage(flowhook.audit({ ...filter, signal }), cursor),
    { newestFirst: ({ id }) => id },
  );

/** The last 24 hours, by the hour: of the team, a workflow or a webhook. */
export const dayUsageQuery = (of: { workflowId?: string; webhookId?: string } = {}) =>
  ask(['usage', 'day', of], (signal) => flowhook.usage({ ...of, by: 'hour', signal }), {
    // It is read again when something ends; and where nothing does, the hours go on all the same.
    refetchInterval: 5 * 60_000,
  });

/** How the instance stands; nothing tells of it, so it is asked again. */
export const systemQuery = () =>
  ask(['system'], (signal) => flowhook.system({ signal }), {
    refetchInterval: 5_000,
  });

/** What is wrong with the installation. The service remembers it for half a minute, and looks when it is asked. */
export const systemChecksQuery = () =>
  ask(['system', 'checks'], (signal) => flowhook.systemChecks({ signal }), {
    refetchInterval: 5 * 60_000,
  });
