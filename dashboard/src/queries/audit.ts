/** What pages ask about the audit. */
import type { AuditLine } from 'flowhook-client';
import { flowhook } from '../client.ts';
import { listQuery } from './list.ts';
import type { ListPage } from './merge-pages.ts';

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
    async (cursor, signal): Promise<ListPage<AuditLine>> => {
      const pages = flowhook.audit({ ...filter, signal });
      // What fits may lie further back than one page looks.
      let page = await pages.page(cursor);
      while (page.items.length === 0 && page.next !== null) page = await pages.page(page.next);
      return page;
    },
    { newestFirst: ({ id }) => id },
  );
