/** The events of the team, in order. */
import { type ListOptions, type Pages, pagesOf } from './pages.ts';
import type { Delivery, EventKind, FlowhookEvent } from './resources.ts';
import type { CallOptions, Transport } from './transport.ts';

/** The longest that the service holds a long poll, in seconds. */
const HELD_S = 25;

export interface EventsOptions extends CallOptions {
  /** The `sequence` of the last event that is known; 0, the default: from the beginning; `now`: only new ones. */
  after?: number | 'now' | undefined;
  /** Events of an answer, 1 to 250; 100 unless told. */
  limit?: number | undefined;
}

export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Some events after a position, and the position to continue from.
   *
   * @param options.wait seconds to wait for one, at most 25
   */
  page(
    options: EventsOptions & { wait?: number | undefined } = {},
  ): Promise<{ events: FlowhookEvent[]; next: number }> {
    const { after, limit, wait = 0, timeoutMs, ...rest } = options;
    const patienceMs = this.#transport.patienceMs({ timeoutMs });
    return this.#transport.json({
      ...rest,
      // The time that the service was asked to wait is no delay.
      timeoutMs: patienceMs > 0 ? patienceMs + wait * 1_000 : 0,
      path: '/v1/events',
      query: { after, limit, wait },
    });
  }

  /** Follows the events until the signal aborts or the loop is left. To continue later, keep `sequence`. */
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
   * Past events, newest first: of a workflow, of a job, of some types, of a time (ISO 8601). A page may be empty and still
   * have a next one. @throws NotFound for the workflow or the job
   */
  history(
    options: ListOptions & {
      workflowId?: string | undefined;
      jobId?: string | undefined;
      type?: readonly FlowhookEvent['type'][] | undefined;
      since?: string | undefined;
      until?: string | undefined;
    } = {},
  ): Pages<FlowhookEvent> {
    const { workflowId, jobId, type, since, until, ...rest } = options;
    const query = { workflowId, jobId, type, since, until };
    return pagesOf(this.#transport, 'events', { ...rest, path: '/v1/events/history', query });
  }

  /** The deliveries of an event to all webhooks, newest first. @throws NotFound */
  deliveries(eventId: string, options: ListOptions = {}): Pages<Delivery> {
    const path = `/v1/events/${encodeURIComponent(eventId)}/deliveries`;
    return pagesOf(this.#transport, 'deliveries', { ...options, path });
  }

  /** One event, exactly as webhooks are sent it. @throws NotFound */
  get(eventId: string, options: CallOptions = {}): Promise<FlowhookEvent> {
    return this.#transport.json({ ...options, path: `/v1/events/${encodeURIComponent(eventId)}` });
  }

  /** Every type of event. */
  async types(options: CallOptions = {}): Promise<EventKind[]> {
    return (await this.#transport.json<{ types: EventKind[] }>({ ...options, path: '/v1/events/types' }))
      .types;
  }

  /** The last event of a type, or an example if there is none. @throws NotFound when there is no such type */
  async sample(type: string, options: CallOptions = {}): Promise<FlowhookEvent | undefined> {
    const path = `/v1/samples/${encodeURIComponent(type)}`;
    return (await this.#transport.json<FlowhookEvent[]>({ ...options, path }))[0];
  }
}
