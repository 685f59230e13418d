/** The client: an address, a key, and one property for each noun. */
import { type AuditOptions, auditOf } from './audit.ts';
import { Events } from './events.ts';
import { Feeds } from './feeds.ts';
import { Inspectors } from './inspectors.ts';
import { Jobs } from './jobs.ts';
import { Keys } from './keys.ts';
import { linesOf } from './lines.ts';
import type { Pages } from './pages.ts';
import { Quarantine } from './quarantine.ts';
import type { AuditLine, Me, SearchResult, SigningKey, System, SystemChecks, Usage } from './resources.ts';
import { type News, newsOf, type StreamOptions } from './stream.ts';
import { type Call, type CallOptions, Transport, type TransportOptions } from './transport.ts';
import type { UsageOptions } from './usage.ts';
import { Deliveries, Webhooks } from './webhooks.ts';
import { Workflows } from './workflows.ts';

/** The service prints `url` and `key` at its first start. */
export interface FlowhookOptions extends TransportOptions {
  /** The URL of the service, such as `https://flowhook.example.com`. */
  url: string;
  /** An API key. Never put a key into a page that others load. @throws TypeError if it is given, but undefined or empty */
  key?: string | undefined;
  /** Replaces the `fetch` of the runtime. */
  fetch?: typeof fetch;
  /** Time limit per attempt of a call, in milliseconds (default: 30,000). 0 means no limit. */
  timeoutMs?: number;
  /**
   * How often a failed call is retried (default: 2), if that is safe: reads, PUT, deletions, and calls with an idempotency
   * key.
   */
  retries?: number;
  /**
   * A text such as `my-app/1.2`, added before the user agent of the client. Browsers send their own user agent instead.
   */
  userAgent?: string;
  /**
   * Called with every response before it is read, including those of failed attempts. Use it for headers, logs or rate
   * limits. To read the body, `clone()` the response.
   */
  onResponse?: (response: Response, call: Call) => void;
}

/** Where to search (default: everywhere), and the maximum number of hits of each type (default: 10). */
export interface SearchOptions {
  types?: readonly SearchResult['hits'][number]['type'][] | undefined;
  limit?: number | undefined;
}

/**
 * ```ts
 * const flowhook = new Flowhook({ url: 'http://127.0.0.1:8080', key });
 * const { jobId } = await flowhook.workflows.queue('people');
 * await flowhook.jobs.wait(jobId);
 * for await (const record of flowhook.workflows.readData('people')) console.log(record.id);
 * ```
 *
 * Every call may throw a `FlowhookError` or the reason of its `signal`.
 */
export class Flowhook {
  readonly workflows: Workflows;
  readonly jobs: Jobs;
  readonly webhooks: Webhooks;
  readonly deliveries: Deliveries;
  readonly feeds: Feeds;
  readonly inspectors: Inspectors;
  readonly events: Events;
  readonly keys: Keys;
  readonly quarantine: Quarantine;
  readonly #transport: Transport;

  constructor(options: FlowhookOptions) {
    const transport = new Transport(options);
    this.#transport = transport;
    this.events = new Events(transport);
    this.workflows = new Workflows(transport);
    this.jobs = new Jobs(transport, this.events);
    this.webhooks = new Webhooks(transport);
    this.deliveries = new Deliveries(transport);
    this.feeds = new Feeds(transport);
    this.inspectors = new Inspectors(transport);
    this.keys = new Keys(transport);
    this.quarantine = new Quarantine(transport);
  }

  /** The team, the scopes and the limits of the key. @throws Unauthorized */
  me(options: CallOptions = {}): Promise<Me> {
    return this.#transport.json({ ...options, path: '/v1/me' });
  }

  /** Finds a text in everything that the key may read. `incomplete`: the types that were not searched completely. */
  search(q: string, { types, limit, ...options }: CallOptions & SearchOptions = {}): Promise<SearchResult> {
    return this.#transport.json({ ...options, path: '/v1/search', query: { q, types, limit } });
  }

  /** The usage of the team, or of one workflow or webhook, by hour or day. @throws NotFound */
  usage({ by, from, to, workflowId, webhookId, ...options }: UsageOptions = {}): Promise<Usage> {
    const query = { by, from, to, workflowId, webhookId };
    return this.#transport.json({ ...options, path: '/v1/usage', query });
  }

  /** The state and the settings of the instance. Requires the scope `operator`. @throws Unauthorized */
  system(options: CallOptions = {}): Promise<System> {
    return this.#transport.json({ ...options, path: '/v1/system' });
  }

  /**
   * Runs the health checks of the instance, which may take half a minute. Requires the scope `operator`.
   *
   * @throws Unauthorized
   */
  systemChecks({ timeoutMs = 60_000, ...options }: CallOptions = {}): Promise<SystemChecks> {
    return this.#transport.json({ ...options, timeoutMs, path: '/v1/system/checks' });
  }

  /** The audit log of the team, newest first. Requires the scope `admin`. @throws Unauthorized, NotFound */
  audit(options: AuditOptions = {}): Pages<AuditLine> {
    return auditOf(this.#transport, options);
  }

  /**
   * Calls any route, for example one that is newer than this client, with the key, retries and errors of other calls. A
   * DELETE is not retried, because it would fail if the first attempt succeeded.
   *
   * ```ts
   * const response = await flowhook.request({ path: '/v1/jobs', query: { limit: 1 } });
   * ```
   *
   * @returns the response, whose status is 2xx or 304
   */
  request(call: Call): Promise<Response> {
    return this.#transport.stream(call);
  }

  /**
   * Exports everything that the team stores about a person, as JSON texts with `place`, `workflowId` and the data found
   * there. Without `timeoutMs` there is no time limit.
   */
  async *exportPerson(email: string, { signal, timeoutMs = 0 }: CallOptions = {}): AsyncGenerator<string> {
    const call = { method: 'POST', path: '/v1/export', json: { email }, signal, timeoutMs };
    yield* linesOf(await this.#transport.stream(call), { patienceMs: timeoutMs, signal });
  }

  /**
   * Notifications of changes in the team, starting now or after a `sequence`. The stream ends with the connection: call
   * `stream` again to continue.
   */
  stream(options: StreamOptions = {}): AsyncGenerator<News> {
    return newsOf(this.#transport, options);
  }

  /** The public signing keys of a team (default: the team `default`), for `verifyWebhook`. */
  async signingKeys(teamId?: string, options: CallOptions = {}): Promise<SigningKey[]> {
    const path = `/.well-known/webhook-signing-keys${teamId === undefined ? '' : `/${encodeURIComponent(teamId)}`}`;
    return (await this.#transport.json<{ keys: SigningKey[] }>({ ...options, path })).keys;
  }
}
