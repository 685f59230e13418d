/** Which events have started a node already: a service that is killed in the middle of a request sends it again. */
import type { IDataObject } from 'n8n-workflow';

/** Whatever comes twice comes within minutes, and what is replayed on purpose later has to start the node again. */
const REMEMBERED_MS = 60 * 60_000;
const MOST = 500;

/** Of this process: n8n saves what a node remembers after each request, and of two at once keeps that of the last. */
const here = new Map<string, number>();

/**
 * Notes an event.
 *
 * @param node names the node among all of this process
 * @param kept of the node, as `{ [eventId]: epoch milliseconds }`; saved by n8n
 * @returns false when it was noted before
 */
export function isNew(
  eventId: string,
  { node, kept, nowMs }: { node: string; kept: IDataObject; nowMs: number },
) {
  const key = `${node} ${eventId}`;
  const before = Math.max(Number(kept[eventId] ?? 0), here.get(key) ?? 0);
  if (before > nowMs - REMEMBERED_MS) return false;
  kept[eventId] = nowMs;
  here.set(key, nowMs);
  for (const [id, at] of Object.entries(kept)) if (Number(at) <= nowMs - REMEMBERED_MS) delete kept[id];
  for (const id of Object.keys(kept).slice(0, -MOST)) delete kept[id];
  for (const [oldest, at] of here) {
    if (here.size <= MOST * 10 && at > nowMs - REMEMBERED_MS) break;
    here.delete(oldest);
  }
  return true;
}
