/** The events of the team: in order, newest first, and by type. */
import { type ListOptions, type Pages, pagesOf } from './pages.ts';
import type { Decision, Delivery, EventKind, FlowhookEvent } from './resources.ts';
import type { CallOptions, Transport } from './transport.ts';

/** The longest `wait` that the service accepts, in seconds. */
const HELD_S = 25;

export interface EventsOptions extends CallOptions {
  /** The `sequence` of the last known event (default: 0, all events); `now` for only new events. */
  after?: number | 'now' | undefined;
  /** Maximum number of events per response, 1 to 250 (default: 100). */
  limit?: number | undefined;
  /** Only events that match this expression, each with only the differences that match. */
  filter?: string | undefined;
}

export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Events after a position, and the position to continue from.
   *
   * @param options.wait seconds to wait for an event, at most 25 (default: 0)
   */
  page(
    options: EventsOptions & { wait?: number | undefined } = {},
  ): Promise<{ events: FlowhookEvent[]; next: number }> {
    const { after, limit, filter, wait = 0, timeoutMs, ...rest } = options;
    const patienceMs = this.#transport.patienceMs({ timeoutMs });
    return this.#transport.json({
      ...rest,
      // The requested wait does not count towards the timeout.
      timeoutMs: patienceMs > 0 ? patienceMs + wait * 1_000 : 0,
      path: '/v1/events',
      query: { after, limit, filter, wait },
    });
  }

  /**
   * Follows the events until the signal aborts or the loop ends. To continue later, pass the `sequence` of the last event
   * as `after`.
   */
  async *follow(options: EventsOptions = {}): AsyncGenerator<FlowhookEvent> {
    let after = options.after ?? 'now';
    for (;;) {
      const wait = after === 'now' ? 0 : HELD_S;
      const { events, next } = await this.page({ ...options, after, wait });
      yield* events;
      after = next;
    }
  }

  /**
   * Past events, newest first. `since` and `until` are ISO 8601 times. A page may be empty and still have a next page.
   *
   * @throws NotFound for the workflow or the job
   */
  history(
    options: ListOptions & {
      workflowId?: string | undefined;
      jobId?: string | undefined;
      type?: readonly FlowhookEvent['type'][] | undefined;
      since?: string | undefined;
      until?: string | undefined;
      filter?: string | undefined;
    } = {},
  ): Pages<FlowhookEvent> {
    const { workflowId, jobId, type, since, until, filter, ...rest } = options;
    const query = { workflowId, jobId, type, since, until, filter };
    return pagesOf(this.#transport, 'events', { ...rest, path: '/v1/events/history', query });
  }

  /** The deliveries of an event to all webhooks, newest first. @throws NotFound */
  deliveries(eventId: string, options: ListOptions = {}): Pages<Delivery> {
    const path = `/v1/events/${encodeURIComponent(eventId)}/deliveries`;
    return pagesOf(this.#transport, 'deliveries', { ...options, path });
  }

  /** What the rules of webhooks decided about an event. @throws NotFound */
  decisions(eventId: string, options: ListOptions = {}): Pages<Decision> {
    const path = `/v1/events/${encodeURIComponent(eventId)}/decisions`;
    return pagesOf(this.#transport, 'decisions', { ...options, path });
  }

  /** One event, exactly as webhooks receive it. @throws NotFound */
  get(eventId: string, options: CallOptions = {}): Promise<FlowhookEvent> {
    return this.#transport.json({ ...options, path: `/v1/events/${encodeURIComponent(eventId)}` });
  }

  /** All event types. */
  async types(options: CallOptions = {}): Promise<EventKind[]> {
    return (await this.#transport.json<{ types: EventKind[] }>({ ...options, path: '/v1/events/types' }))
      .types;
  }

  /** The newest event of a type, or an example if there is none. @throws NotFound for an unknown type */
  async sample(type: string, options: CallOptions = {}): Promise<FlowhookEvent | undefined> {
    const path = `/v1/samples/${encodeURIComponent(type)}`;
    return (await this.#transport.json<FlowhookEvent[]>({ ...options, path }))[0];
  }
}
