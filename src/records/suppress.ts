/** Keeping a person out of later runs: keyed hashes, so that nobody is named who was to be forgotten. */
import { mac, type Sealer } from '../std/seal.ts';
import type { SuppressionRow } from '../store/erasure-operations.ts';
import type { Store } from '../store/store.ts';
import { normalEmail } from './person.ts';

/** Whom a run must drop. Passes between threads. */
export interface Suppression {
  /** For the hashes; of one team only. */
  key: Uint8Array;
  emails: ReadonlySet<string>;
  ids: ReadonlySet<string>;
}

/** Whom the runs of a workflow must drop from now on; nothing when there is nobody. To be asked by every attempt. */
export async function loadSuppression(
  { store, sealer }: { store: Store; sealer: Sealer },
  at: { teamId: string; workflowId: string },
): Promise<Suppression | undefined> {
  const rows = await store.erasure.suppressed(at);
  if (rows.length === 0) return undefined;
  const hashes = (kind: SuppressionRow['kind']) =>
    new Set(rows.filter((row) => row.kind === kind).map((row) => row.hash));
  return { key: subjectKey(sealer, at.teamId), emails: hashes('email'), ids: hashes('id') };
}

/** Whether a record is of somebody who must not come back. */
export function isSuppressed(suppression: Suppression, { id, body }: { id: string; body: string }): boolean {
  const { key, emails, ids } = suppression;
  if (ids.size > 0 && ids.has(subjectHash(key, 'id', id))) return true;
  if (emails.size === 0) return false;
  const { email } = JSON.parse(body) as { email?: unknown };
  return typeof email === 'string' && emails.has(subjectHash(key, 'email', email));
}

/** The key under which a team's persons are hashed. */
export function subjectKey(sealer: Sealer, teamId: string): Buffer {
  return sealer.macKey(`erasure/${teamId}`);
}

/** What stands for a person where the person must not be named. */
export function subjectHash(key: Uint8Array, kind: SuppressionRow['kind'], value: string): string {
  return mac(key, `${kind}\0${kind === 'email' ? normalEmail(value) : value}`);
}
