/**
 * Keeps erased people out of later runs. Stores keyed hashes of their addresses and ids instead of the addresses and
 * ids.
 */

import { mac, type Sealer } from '../std/seal.ts';
import type { SuppressionRow } from '../store/operations/erasure/erase.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { normalEmail } from './person.ts';

/** The suppressed people, whose records a run must drop. This object is sent between threads. */
export interface Suppression {
  /** The key of the hashes, which is different for each team. */
  key: Uint8Array;
  emails: ReadonlySet<string>;
  ids: ReadonlySet<string>;
}

/** Loads the suppressed people of a workflow; undefined if there are none. Every attempt must load them again. */
export async function loadSuppression(
  { store, sealer }: { store: Store; sealer: Sealer },
  at: { teamId: string; workflowId: string },
): Promise<Suppression | undefined> {
  const hashes = { email: new Set<string>(), id: new Set<string>() };
  for (const workflowId of ['', at.workflowId]) {
    const of = { teamId: at.teamId, workflowId };
    for await (const { kind, hash } of everyRow(store.erasure.suppressed, of, (row) => row)) {
      hashes[kind].add(hash);
    }
  }
  if (hashes.email.size + hashes.id.size === 0) return undefined;
  return { key: subjectKey(sealer, at.teamId), emails: hashes.email, ids: hashes.id };
}

/** Whether a record belongs to a suppressed person. */
export function isSuppressed(suppression: Suppression, { id, body }: { id: string; body: string }): boolean {
  const { key, emails, ids } = suppression;
  if (ids.size > 0 && ids.has(subjectHash(key, 'id', id))) return true;
  if (emails.size === 0) return false;
  const { email } = JSON.parse(body) as { email?: unknown };
  return typeof email === 'string' && emails.has(subjectHash(key, 'email', email));
}

/** The key for the hashes of suppressed people of a team. */
export function subjectKey(sealer: Sealer, teamId: string): Buffer {
  return sealer.macKey(`erasure/${teamId}`);
}

/** The hash that represents a person where the person must not be named. */
export function subjectHash(key: Uint8Array, kind: SuppressionRow['kind'], value: string): string {
  return mac(key, `${kind}\0${kind === 'email' ? normalEmail(value) : value}`);
}
