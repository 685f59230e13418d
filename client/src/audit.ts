/** The audit: who changed what, when, and from where. */
import { type ListOptions, type Pages, pagesOf } from './pages.ts';
import type { Transport } from './transport.ts';

/** One change. Times are ISO 8601 in UTC with milliseconds. */
export interface AuditLine {
  id: string;
  createdAt: string;
  /** Its slug; null: the instance, as for a team that was deleted. */
  team: string | null;
  /** The operation, such as `webhooks.subscribe`. */
  action: string;
  actor: {
    kind: 'key' | 'session' | 'command' | 'file' | 'service' | 'unknown';
    /** Of the key. */
    id: string | null;
    name: string | null;
  };
  target: {
    kind: 'team' | 'key' | 'workflow' | 'job' | 'webhook' | 'delivery' | 'inspector' | 'backup';
    id: string;
  } | null;
  /** Where the request came from. */
  address: string | null;
  requestId: string | null;
  summary: string;
  /** Of erasures: what was found where. */
  details: Record<string, unknown>;
}

export interface AuditOptions extends ListOptions {
  /** The slug of another team, or `*` for all and the instance: for keys with the scope `operator`. */
  team?: string | undefined;
  action?: string | undefined;
  /** The id of a key. */
  actor?: string | undefined;
  /** The id of what was changed. */
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
