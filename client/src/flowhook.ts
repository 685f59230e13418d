/** The client: an address, a key, and one property for each noun. */
import { type AuditOptions, auditOf } from './audit.ts';
import { Events } from './events.ts';
import { Inspectors } from './inspectors.ts';
import { Jobs } from './jobs.ts';
import { Keys } from './keys.ts';
import { linesOf } from './lines.ts';
import type { Pages } from './pages.ts';
import type { AuditLine, Me, SigningKey, System, SystemChecks, Usage } from './resources.ts';
import { type News, newsOf, type StreamOptions } from './stream.ts';
import { type Call, type CallOptions, Transport, type TransportOptions } from './transport.ts';
import type { UsageOptions } from './usage.ts';
import { Deliveries, Webhooks } from './webhooks.ts';
import { Workflows } from './workflows.ts';

/** `url` and `key` are what the service prints at its first start. */
export interface FlowhookOptions extends TransportOptions {
  /** Where the service is, such as `https://flowhook.example.com`. */
  url: string;
  /** An API key. Never put one into a page that others load. */
  key?: string;
  /** Instead of the runtime's own. */
  fetch?: typeof fetch;
  /** Milliseconds for one attempt of a call; 30,000 unless told, 0: no limit. */
  timeoutMs?: number;
  /**
   * How often a failed call is retried, where that is safe: reading, PUT, removing, and calls with an idempotency key. 2
   * unless told.
   */
  retries?: number;
  /** Sent before the client's own, such as `my-app/1.2`. Browsers send theirs instead. */
  userAgent?: string;
  /**
   * Is given every response before it is read, also those of failed attempts: for headers, a log, a rate limit. Of its
   * body read a `clone()` only.
   */
  onResponse?: (response: Response, call: Call) => void;
}

/**
 * ```ts
 * const flowhook = new Flowhook({ url: 'http://127.0.0.1:8080', key });
 * const { jobId } = await flowhook.workflows.queue('people');
 * await flowhook.jobs.wait(jobId);
 * for await (const record of flowhook.workflows.readData('people')) console.log(record.id);
 * ```
 *
 * Every call may throw `FlowhookError` and its kinds, and the reason of its `signal`.
 */
export class Flowhook {
  readonly workflows: Workflows;
  readonly jobs: Jobs;
  readonly webhooks: Webhooks;
  readonly deliveries: Deliveries;
  readonly inspectors: Inspectors;
  readonly events: Events;
  readonly keys: Keys;
  readonly #transport: Transport;

  constructor(options: FlowhookOptions) {
    const transport = new Transport(options);
    this.#transport = transport;
    this.events = new Events(transport);
    this.workflows = new Workflows(transport);
    this.jobs = new Jobs(transport, this.events);
    this.webhooks = new Webhooks(transport);
    this.deliveries = new Deliveries(transport);
    this.inspectors = new Inspectors(transport);
    this.keys = new Keys(transport);
  }

  /** The team and scopes of the key: a way to check it. @throws Unauthorized */
  me(options: CallOptions = {}): Promise<Me> {
    return this.#transport.json({ ...options, path: '/v1/me' });
  }

  /** How much the team has done, or one workflow or webhook of it, by hours or days. @throws NotFound */
  usage({ by, from, to, workflowId, webhookId, ...options }: UsageOptions = {}): Promise<Usage> {
    const query = { by, from, to, workflowId, webhookId };
    return this.#transport.json({ ...options, path: '/v1/usage', query });
  }

  /** The state of the instance and its settings: for keys with the scope `operator`. @throws Unauthorized */
  system(options: CallOptions = {}): Promise<System> {
    return this.#transport.json({ ...options, path: '/v1/system' });
  }

  /**
   * What is wrong with the installation, and what to do about it: for keys with the scope `operator`. It may take half a
   * minute. @throws Unauthorized
   */
  systemChecks({ timeoutMs = 60_000, ...options }: CallOptions = {}): Promise<SystemChecks> {
    return this.#transport.json({ ...options, timeoutMs, path: '/v1/system/checks' });
  }

  /** Who changed what in the team, newest first: for keys with the scope `admin`. @throws Unauthorized, NotFound */
  audit(options: AuditOptions = {}): Pages<AuditLine> {
    return auditOf(this.#transport, options);
  }

  /**
   * Any call of the API, with the key, retries and errors of all others, such as of a route that is newer than this
   * client. A DELETE is not retried: if the first has removed it, the second would fail.
   *
   * ```ts
   * const response = await flowhook.request({ path: '/v1/jobs', query: { limit: 1 } });
   * ```
   *
   * @returns the response itself: its status is 2xx or 304
   */
  request(call: Call): Promise<Response> {
    return this.#transport.stream(call);
  }

  /**
   * Everything that the team stores about a person, as a series of JSON texts: `place`, `workflowId`, and what was found
   * there. There is no time limit unless `timeoutMs` sets one.
   */
  async *exportPerson(email: string, { signal, timeoutMs = 0 }: CallOptions = {}): AsyncGenerator<string> {
    const call = { method: 'POST', path: '/v1/export', json: { email }, signal, timeoutMs };
    yield* linesOf(await this.#transport.stream(call), { patienceMs: timeoutMs, signal });
  }

  /**
   * Notifications of what changes in the team, from now on or after the `sequence` of earlier ones. The stream ends with
   * the connection: then call it again.
   */
  stream(options: StreamOptions = {}): AsyncGenerator<News> {
    return newsOf(this.#transport, options);
  }

  /** The public keys that a team signs with, for `verifyWebhook`. Without an id: of the team `default`. */
  async signingKeys(teamId?: string, options: CallOptions = {}): Promise<SigningKey[]> {
    const path = `/.well-known/webhook-signing-keys${teamId === undefined ? '' : `/${encodeURIComponent(teamId)}`}`;
    return (await this.#transport.json<{ keys: SigningKey[] }>({ ...options, path })).keys;
  }
}
