/** The audit log: who changed what, when, and from where. It contains no secrets and no record contents. */

/**
 * Who made a change. `key`: a caller of the API, identified by the id of the key; `session`: a user of the dashboard,
 * identified by the id of the key used to sign in; `command`: a shell command, identified by the name of the system
 * user; `file`: a workflow file that was loaded or reloaded; `service`: the service itself, at startup; `unknown`: an
 * unidentified caller.
 */
export const ACTOR_KINDS = ['key', 'session', 'command', 'file', 'service', 'unknown'] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** Who made a change, and from where. */
export interface Author {
  kind: ActorKind;
  /** The id of a key. */
  id: string | null;
  /** Name of the system user. Null for keys, because the name of a key is looked up when audit lines are read. */
  name: string | null;
  /** Client address of the request, as reported by trusted proxies. */
  address: string | null;
  requestId: string | null;
}

/** The author of a change that was made in this process or at a shell, so there is no client address and no request. */
export function localAuthor(kind: ActorKind, name: string | null = null): Author {
  return { kind, id: null, name, address: null, requestId: null };
}

export const TARGET_KINDS = [
  'team',
  'key',
  'workflow',
  'job',
  'webhook',
  'delivery',
  'inspector',
  'feed',
  'backup',
] as const;

/** What was changed. */
export interface Target {
  kind: (typeof TARGET_KINDS)[number];
  id: string;
}

/** The `teamId` of audit lines that belong to no team: failed sign-ins, deleted teams, restored backups. */
export const OF_INSTANCE = '';

/** A change without its author. */
export interface Change {
  /** Id of the team, or `OF_INSTANCE` if the change belongs to no team. */
  teamId: string;
  /** Name of the operation, such as `webhooks.subscribe`. */
  action: string;
  target: Target | null;
  /** A short summary without secrets, addresses or record contents. */
  summary: string;
  /** For erasures: keyed hash of the erased person. */
  subject?: string;
  /** For erasures: what was found, and where. For webhooks that were moved: where they sent which events, and send now. */
  details?: unknown;
}

/** A stored line of the audit log. Times are in epoch milliseconds. */
export interface AuditLine extends Required<Omit<Change, 'subject'>> {
  id: string;
  /** Slug of the team; null if the line belongs to the whole instance. */
  team: string | null;
  author: Author;
  subject: string | null;
  createdAt: number;
}
