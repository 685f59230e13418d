/** `flowhook events` against a server. */
import type { Flowhook, FlowhookEvent } from 'flowhook-client';
import { wholeNumber } from './flag-values.ts';
import { print } from './output.ts';
import type { Options } from './settings.ts';
import { type Head, table } from './table.ts';

/** How many events are listed, from a server or from the database. */
export const DEFAULT_EVENTS = 100;
export const MAX_EVENTS = 1_000;
/** What is above the cells of an event. */
export const EVENT_HEADS: readonly Head[] = [
  { name: '#' },
  { name: 'time' },
  { name: 'event' },
  { name: 'workflow' },
  { name: 'id', drop: 2 },
  { name: 'job', drop: 1 },
];
/** Events that a server answers at once. */
const PAGE = 250;

export async function listEventsAt(server: Flowhook, options: Options): Promise<void> {
  const limit = wholeNumber('--limit', options.limit ?? DEFAULT_EVENTS, 1, MAX_EVENTS);
  const after =
    options.after === undefined
      ? Math.max(0, (await server.events.page({ after: 'now' })).next - limit)
      : wholeNumber('--after', options.after, 0, Number.MAX_SAFE_INTEGER);
  const events: FlowhookEvent[] = [];
  for (let place = after, more = true; more && events.length < limit; ) {
    const page = await server.events.page({ after: place, limit: Math.min(PAGE, limit - events.length) });
    events.push(...page.events);
    more = page.events.length > 0;
    place = page.next;
  }
  const cells = events.map((event) => [
    String(event.sequence),
    event.timestamp,
    event.type,
    event.workflowId ?? '-',
    event.id,
    event.jobId ?? '',
  ]);
  print(options, events, table(cells, process.stdout.columns, EVENT_HEADS));
}
