/**
 * The events that have already started a node: a service that is killed during a request repeats it.
 *
 * In memory, because n8n (2.41.1) does not save static data that a webhook changes when it starts an execution.
 */

/** Repeated events arrive within minutes. A replay after this time must start the node again. */
const REMEMBERED_MS = 60 * 60_000;
const MOST = 10_000;

/** Epoch milliseconds by node and event, oldest first. */
const seen = new Map<string, number>();

/**
 * Remembers an event.
 *
 * @param node identifies the node within this process
 * @returns false if the event was already remembered
 */
export function isNew(eventId: string, { node, nowMs }: { node: string; nowMs: number }): boolean {
  for (const [oldest, at] of seen) {
    if (seen.size <= MOST && at > nowMs - REMEMBERED_MS) break;
    seen.delete(oldest);
  }
  const key = `${node} ${eventId}`;
  if (seen.has(key)) return false;
  seen.set(key, nowMs);
  return true;
}
