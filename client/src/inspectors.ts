/** Inspectors: temporary URLs that keep the requests they receive, for trying webhooks without a receiver. */
import { type ListOptions, type Pages, pagesOf, type WholeList, wholeListOf } from './pages.ts';
import type { InspectedRequest, Inspector, InspectorAnswer } from './resources.ts';
import type { CallOptions, Transport } from './transport.ts';

export class Inspectors {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** By default, the inspector returns 204 immediately. @throws Conflict if the team has reached its limit */
  create(answer: InspectorAnswer = {}, options: CallOptions = {}): Promise<Inspector> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/inspectors', json: answer });
  }

  /** All inspectors of the team, oldest first. */
  list(options: CallOptions = {}): WholeList<Inspector> {
    return wholeListOf(this.#transport, 'inspectors', { ...options, path: '/v1/inspectors' });
  }

  /** @throws NotFound */
  get(inspectorId: string, options: CallOptions = {}): Promise<Inspector> {
    return this.#transport.json({ ...options, path: pathOf(inspectorId) });
  }

  /** @throws NotFound */
  update(inspectorId: string, answer: InspectorAnswer, options: CallOptions = {}): Promise<Inspector> {
    return this.#transport.json({ ...options, method: 'PATCH', path: pathOf(inspectorId), json: answer });
  }

  /** Deletes an inspector and its stored requests. @throws NotFound */
  delete(inspectorId: string, options: CallOptions = {}): Promise<{ message: string }> {
    return this.#transport.remove({ ...options, path: pathOf(inspectorId) });
  }

  /**
   * The stored requests, newest first.
   *
   * @param options.after only requests with a higher `number`
   * @throws NotFound
   */
  requests(
    inspectorId: string,
    { after, ...options }: ListOptions & { after?: number | undefined } = {},
  ): Pages<InspectedRequest> {
    const path = `${pathOf(inspectorId)}/requests`;
    return pagesOf(this.#transport, 'requests', { ...options, path, query: { after } });
  }
}

function pathOf(inspectorId: string): string {
  return `/v1/inspectors/${encodeURIComponent(inspectorId)}`;
}
