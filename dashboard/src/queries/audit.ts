/** What pages ask about the audit. */
import { flowhook } from '../client.ts';
import { filledPage, listQuery } from './list.ts';

export interface AuditFilter {
  action?: string | undefined;
  actor?: string | undefined;
  target?: string | undefined;
  /** ISO 8601. */
  since?: string | undefined;
}

export const auditList = (filter: AuditFilter) =>
  listQuery(
    ['audit', 'list', filter],
    (cursor, signal) => filledPage(flowhook.audit({ ...filter, signal }), cursor),
    { newestFirst: ({ id }) => id },
  );
