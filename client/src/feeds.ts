/** Feeds: the changes of a workflow as Atom and JSON Feed, at secret addresses. */
import { type WholeList, wholeListOf } from './pages.ts';
import type { Feed, FeedChanges, NewFeed } from './resources.ts';
import { type CallOptions, type KeyedOptions, randomKey, type Transport } from './transport.ts';

export class Feeds {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** @throws NotFound for the workflow; Conflict if it has reached its limit of feeds */
  create(
    workflowId: string,
    settings: NewFeed = {},
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<Feed> {
    const call = { ...options, method: 'POST', path: pathOf(workflowId), json: settings, idempotencyKey };
    return this.#transport.json(call);
  }

  /** All feeds of a workflow, oldest first. @throws NotFound */
  list(workflowId: string, options: CallOptions = {}): WholeList<Feed> {
    return wholeListOf(this.#transport, 'feeds', { ...options, path: pathOf(workflowId) });
  }

  /** @throws NotFound */
  get(workflowId: string, feedId: string, options: CallOptions = {}): Promise<Feed> {
    return this.#transport.json({ ...options, path: pathOf(workflowId, feedId) });
  }

  /** Changes settings; those that are not given stay as they are. @throws NotFound */
  async update(
    workflowId: string,
    feedId: string,
    changes: FeedChanges,
    options: CallOptions = {},
  ): Promise<Feed> {
    const path = pathOf(workflowId, feedId);
    return (await this.#transport.json<Changed>({ ...options, method: 'PATCH', path, json: changes })).feed;
  }

  /** Gives a feed new addresses. The previous ones return 410. @throws NotFound */
  async rotate(workflowId: string, feedId: string, options: CallOptions = {}): Promise<Feed> {
    const path = `${pathOf(workflowId, feedId)}/rotate`;
    return (await this.#transport.json<Changed>({ ...options, method: 'POST', path })).feed;
  }

  /** Deletes a feed. Its addresses return 410. @throws NotFound */
  revoke(workflowId: string, feedId: string, options: CallOptions = {}): Promise<{ message: string }> {
    return this.#transport.remove({ ...options, path: pathOf(workflowId, feedId) });
  }
}

interface Changed {
  feed: Feed;
}

function pathOf(workflowId: string, feedId?: string): string {
  const path = `/v1/workflows/${encodeURIComponent(workflowId)}/feeds`;
  return feedId === undefined ? path : `${path}/${encodeURIComponent(feedId)}`;
}
