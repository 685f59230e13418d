/** The audit: who changed what, when, and from where. No secrets, and nothing of what records hold. */

/**
 * Who changes something. `key`: over the API, by the id of the key; `session`: in the dashboard, by the id of the key
 * that was signed in with; `command`: at a shell, by the name of the system's user; `file`: what workflow files say, at
 * a start or a reload; `service`: a start by itself; `unknown`: nobody whom we know.
 */
export const ACTOR_KINDS = ['key', 'session', 'command', 'file', 'service', 'unknown'] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** Who changes something, and from where: what a line of the audit begins with. */
export interface Author {
  kind: ActorKind;
  /** The id of a key. */
  id: string | null;
  /** Of the system's user. That of a key is not written: lines are read with the name that it has. */
  name: string | null;
  /** Where the request came from, as far as the proxies in between are trusted. */
  address: string | null;
  requestId: string | null;
}

/** An author who is not at the other end of a wire. */
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
  'backup',
] as const;

/** What was changed. */
export interface Target {
  kind: (typeof TARGET_KINDS)[number];
  id: string;
}

/** The team of lines that belong to the instance: failed sign-ins, deleted teams, restored backups. */
export const OF_INSTANCE = '';

/** What happened, apart from who did it. */
export interface Change {
  /** `OF_INSTANCE` for what is no team's. */
  teamId: string;
  /** The operation: `webhooks.subscribe`. */
  action: string;
  target: Target | null;
  /** A few words: never a secret, an address or what a record holds. */
  summary: string;
  /** Of erasures: a keyed hash of whom. */
  subject?: string;
  /** Of erasures: what was found where. */
  details?: unknown;
}

/** One line, as it is kept. Times in epoch milliseconds. */
export interface AuditLine extends Required<Omit<Change, 'subject'>> {
  id: string;
  /** The team's slug; null when the line belongs to the instance. */
  team: string | null;
  author: Author;
  subject: string | null;
  createdAt: number;
}
