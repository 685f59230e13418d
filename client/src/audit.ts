/** The audit log: who changed what, when, and from where. */
import { type ListOptions, type Pages, pagesOf } from './pages.ts';
import type { AuditLine } from './resources.ts';
import type { Transport } from './transport.ts';

export interface AuditOptions extends ListOptions {
  /** The slug of another team, or `*` for all teams and the instance. Requires the scope `operator`. */
  team?: string | undefined;
  action?: string | undefined;
  /** The ID of the key that made the change. */
  actor?: string | undefined;
  /** The ID of the changed resource. */
  target?: string | undefined;
  since?: Date | string | undefined;
  until?: Date | string | undefined;
}

export function auditOf(
  transport: Transport,
  { team, action, actor, target, since, until, ...options }: AuditOptions,
): Pages<AuditLine> {
  const query = { team, action, actor, target, since, until };
  return pagesOf(transport, 'lines', { ...options, path: '/v1/audit', query });
}
