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
 * @param kept what the node remembers, as `{ [eventId]: epoch milliseconds }`
 * @returns what it has to remember from now on, a new object because n8n does not notice what changes within one;
 *   undefined when the event was noted before
 */
export function noteNew(
  eventId: string,
  { node, kept, nowMs }: { node: string; kept: IDataObject; nowMs: number },
): IDataObject | undefined {
  const key = `${node} ${eventId}`;
  const since = nowMs - REMEMBERED_MS;
  if (Math.max(Number(kept[eventId] ?? 0), here.get(key) ?? 0) > since) return undefined;
  here.set(key, nowMs);
  for (const [oldest, at] of here) {
    if (here.size <= MOST && at > since) break;
    here.delete(oldest);
  }
  const recent = Object.entries(kept).filter(([, at]) => Number(at) > since);
  return { ...Object.fromEntries(recent.slice(-(MOST - 1))), [eventId]: nowMs };
}
