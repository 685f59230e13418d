/** Inspectors: temporary URLs that keep the requests they receive, for trying webhooks without a receiver. */
import { type ListOptions, type Pages, pagesOf, type WholeList, wholeListOf } from './pages.ts';
import type { CallOptions, Transport } from './transport.ts';

/** Times are ISO 8601 in UTC with milliseconds. */
export interface Inspector {
  id: string;
  /** The URL to subscribe. It accepts any request from anybody who knows it. */
  url: string;
  /** The status that it answers, and after how many milliseconds. */
  status: number;
  delayMs: number;
  /** Requests so far; the newest 100 are kept. */
  received: number;
  /** Why webhooks of this service cannot reach it; null: they can. */
  refusal: string | null;
  createdAt: string;
  expiresAt: string;
}

export interface InspectedRequest {
  /** Counts from 1. */
  number: number;
  receivedAt: string;
  method: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string>;
  /** Its first 64 KiB. */
  body: string;
  bodyBytes: number;
  truncated: boolean;
  signature: {
    /** `expired`: right, but not of now. */
    verdict: 'valid' | 'expired' | 'invalid' | 'absent';
    /** The same in plain words. */
    message: string;
    /** Whose secret made the `v1` signature. */
    webhookId: string | null;
  };
}

/** What it answers, 200 to 599, and how late, 0 to 20,000 milliseconds. */
export interface InspectorAnswer {
  status?: number;
  delayMs?: number;
}

export class Inspectors {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Answers 204 at once unless told. @throws Conflict when the team has as many as it may have */
  create(answer: InspectorAnswer = {}, options: CallOptions = {}): Promise<Inspector> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/inspectors', json: answer });
  }

  /** All of the team, oldest first. */
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

  /** Removes an inspector with all requests that it received. @throws NotFound */
  delete(inspectorId: string, options: CallOptions = {}): Promise<{ message: string }> {
    return this.#transport.remove({ ...options, path: pathOf(inspectorId) });
  }

  /**
   * The requests that it received, newest first.
   *
   * @param options.after only those that came after the one with this number
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
