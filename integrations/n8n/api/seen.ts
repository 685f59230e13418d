/**
 * Which events have started a node already: a service that is killed in the middle of a request sends it again.
 *
 * In memory, because n8n (2.41.1, seen) does not save the static data that a webhook changes when it starts an execution.
 */

/** Whatever comes twice comes within minutes, and what is replayed on purpose later has to start the node again. */
const REMEMBERED_MS = 60 * 60_000;
const MOST = 10_000;

/** Epoch milliseconds by node and event, the oldest first. */
const seen = new Map<string, number>();

/**
 * Notes an event.
 *
 * @param node names the node among all of this process
 * @returns false when it was noted before
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
