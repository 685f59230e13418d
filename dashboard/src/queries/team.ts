/** Queries for keys, the audit log, usage, and the state of the instance. */
import { flowhook } from '../client.ts';
import { ask, type FilterOf, filledPage, listQuery } from './list.ts';

export const keyList = () =>
  listQuery(['keys', 'list'], (cursor, signal) => flowhook.keys.list({ limit: 1_000, signal }).page(cursor));

/** The keys of the team, as options of a select. */
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

/** Usage of the last 24 hours, by hour: of the team, a workflow or a webhook. */
export const dayUsageQuery = (of: { workflowId?: string; webhookId?: string } = {}) =>
  ask(['usage', 'day', of], (signal) => flowhook.usage({ ...of, by: 'hour', signal }), {
    // Usage is also refetched when jobs or deliveries end. But even if none end, the last 24 hours move on.
    refetchInterval: 5 * 60_000,
  });

/** The stream does not report this state, so it is polled. */
export const systemQuery = () =>
  ask(['system'], (signal) => flowhook.system({ signal }), {
    refetchInterval: 5_000,
  });

/** Findings of the doctor's checks. The service runs them on request and caches the result for 30 s. */
export const systemChecksQuery = () =>
  ask(['system', 'checks'], (signal) => flowhook.systemChecks({ signal }), {
    refetchInterval: 5 * 60_000,
  });
