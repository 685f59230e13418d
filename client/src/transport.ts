/** Sends calls: adds the key, limits their time, retries if that is safe, and throws errors. */
import { errorOf, FlowhookError, RateLimited, TimedOut, Unavailable } from './errors.ts';

export interface CallOptions {
  /** Aborts the call, which then throws the reason of the signal. */
  signal?: AbortSignal | undefined;
  /**
   * Time limit in milliseconds for each attempt or, for streams, for each wait for more data. Overrides the time limit
   * of the client.
   */
  timeoutMs?: number | undefined;
}

/** Options of calls that the service executes once per idempotency key. */
export interface KeyedOptions extends CallOptions {
  /**
   * Repeating a call with the same key within 24 hours returns the result of the first call and creates nothing. The
   * default is a random key, which makes retries of the call safe.
   */
  idempotencyKey?: string | undefined;
}

/** Not `BodyInit`, which the types of some runtimes lack. */
export type Body = string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;

type QueryValue = string | number | boolean | Date | readonly string[] | { each: readonly string[] };

export interface Call extends CallOptions {
  /** Default: GET. */
  method?: string;
  /** Such as `/v1/jobs`. */
  path: string;
  /** Times are sent as ISO 8601, lists comma-separated, or one parameter for `each` item. */
  query?: Readonly<Record<string, QueryValue | undefined>>;
  headers?: Readonly<Record<string, string | undefined>>;
  /** Sent as JSON. */
  json?: unknown;
  body?: Body;
  /** Makes a POST safe to repeat. */
  idempotencyKey?: string | undefined;
}

export interface TransportOptions {
  url: string;
  key?: string | undefined;
  fetch?: typeof fetch;
  timeoutMs?: number;
  retries?: number;
  userAgent?: string;
  onResponse?: (response: Response, call: Call) => void;
}

/** The version in package.json; a test compares the two. */
export const VERSION = '0.1.0';

const TIMEOUT_MS = 30_000;
const RETRIES = 2;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** If the service asks for a longer wait, the error is thrown instead. */
const LONGEST_RETRY_AFTER_MS = 60_000;

export class Transport {
  readonly #url: string;
  readonly #key: string | undefined;
  readonly #fetch: typeof fetch;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #userAgent: string | undefined;
  readonly #onResponse: TransportOptions['onResponse'];

  constructor(options: TransportOptions) {
    this.#url = options.url.replace(/\/+$/, '');
    // A page of the service itself has a cookie instead, and does not name a key.
    if ('key' in options && !options.key)
      throw new TypeError('`key` is missing: create one with `flowhook keys create`');
    this.#key = options.key;
    // `fetch` is called as a global function, because browsers refuse to call it as a method of another object.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#retries = options.retries ?? RETRIES;
    this.#userAgent = userAgent(options.userAgent);
    this.#onResponse = options.onResponse;
  }

  /**
   * Calls and parses the JSON of the response.
   *
   * @param gone makes a DELETE retryable: the value if a retry returns 404, because an earlier attempt may have deleted the
   * resource; null throws the 404
   */
  json<T>(call: Call, gone?: T | null): Promise<T> {
    return this.#repeat(call, (response) => this.#parse<T>(response), gone);
  }

  /** Like `json`, with the headers. @param parse parses the body instead of `JSON.parse` */
  withHeaders<T>(call: Call, parse?: (text: string) => unknown): Promise<{ value: T; headers: Headers }> {
    return this.#repeat(call, async (response) => {
      return { value: await this.#parse<T>(response, parse), headers: response.headers };
    });
  }

  /** Deletes a resource. */
  remove(call: Call): Promise<{ message: string }> {
    return this.json({ ...call, method: 'DELETE' }, { message: 'Removed' });
  }

  /** The response, whose body is not read yet. 304 counts as success, an HTML page as an error. */
  stream(call: Call): Promise<Response> {
    return this.#repeat(call, async (response) => response);
  }

  /** Time limit in milliseconds for each wait for more data of a stream; 0 means no limit. */
  patienceMs({ timeoutMs }: CallOptions): number {
    return timeoutMs ?? this.#timeoutMs;
  }

  async #parse<T>(response: Response, parse: (text: string) => unknown = JSON.parse): Promise<T> {
    const text = await response.text();
    try {
      return parse(text) as T;
    } catch (cause) {
      // Incomplete JSON may be complete in the next attempt.
      if (isJson(response)) throw cause;
      throw this.#notOurs(response, cause);
    }
  }

  async #repeat<T>(call: Call, read: (response: Response) => Promise<T>, gone?: T | null): Promise<T> {
    let mayBeDone = false;
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#once(call, read);
      } catch (error) {
        call.signal?.throwIfAborted();
        // Only the service's own code counts, because a 404 of a proxy says nothing about the resource.
        if (mayBeDone && gone && /_not_found$/.test((error as FlowhookError).code)) return gone;
        mayBeDone ||= !(error instanceof RateLimited);
        const waitMs = waitBefore(error, failures);
        if (failures > this.#retries || !isSafe(call, error, gone) || waitMs > LONGEST_RETRY_AFTER_MS)
          throw error;
        await pause(waitMs, call.signal);
      }
    }
  }

  async #once<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const { signal } = call;
    signal?.throwIfAborted();
    const timeoutMs = this.patienceMs(call);
    const clock = new AbortController();
    const timer = timeoutMs > 0 ? setTimeout(() => clock.abort(), timeoutMs) : undefined;
    try {
      const request = this.#init(call);
      const response = await this.#fetch(this.#url + pathOf(call), {
        ...request,
        signal: signal === undefined ? clock.signal : AbortSignal.any([signal, clock.signal]),
      });
      this.#onResponse?.(response, call);
      if (isPage(response)) throw this.#notOurs(response);
      if (!response.ok && response.status !== 304) throw await errorOf(response);
      return await read(response);
    } catch (cause) {
      if (cause instanceof FlowhookError) throw cause;
      signal?.throwIfAborted();
      if (clock.signal.aborted) throw timedOut(timeoutMs, cause);
      throw new Unavailable({
        message: `The service ${this.#url} cannot be reached, or ended its response early`,
        status: 0,
        code: 'unreachable',
        cause,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** The response came from another program, or from a proxy in front of the service. */
  #notOurs(response: Response, cause?: unknown): FlowhookError {
    const { status, headers } = response;
    response.body?.cancel().catch(() => {});
    const type = headers.get('content-type') ?? 'no content type';
    const message = `${this.#url} returned ${status} with ${type} instead of JSON. Check \`url\``;
    const refusal = { message, status, code: 'not_json', cause };
    // The service behind a proxy may be available again soon.
    return new (status >= 502 && status <= 504 ? Unavailable : FlowhookError)(refusal);
  }

  #init({ method = 'GET', headers = {}, json, body, idempotencyKey }: Call): RequestInit {
    // This is not `Headers`, for which Node would load its whole HTTP client (45 ms), even with another `fetch`.
    const all: Record<string, string> = {};
    const given = {
      'x-api-key': this.#key,
      'user-agent': this.#userAgent,
      'content-type': json === undefined ? json : 'application/json',
      'idempotency-key': idempotencyKey,
      ...headers,
    };
    for (const [name, value] of Object.entries(given)) if (value !== undefined) all[name] = value;
    const sent = body ?? JSON.stringify(json);
    return {
      method,
      headers: all,
      // A redirect would send the key to another address.
      redirect: 'manual',
      // Node and Chrome require it for streams; it is not in the types of all runtimes.
      ...(isStream(sent) ? { duplex: 'half' } : {}),
      ...(sent === undefined ? {} : { body: sent }),
    };
  }
}

/** The error for an attempt or a wait that exceeded its time limit. */
export function timedOut(timeoutMs: number, cause?: unknown): TimedOut {
  return new TimedOut({
    message: `No response within ${timeoutMs} ms`,
    status: 0,
    code: 'timed_out',
    cause,
  });
}

/** Waits, or rejects with the reason of the signal. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener('abort', end, { once: true });
  });
}

/** A key of 128 random bits. Not `randomUUID`, which browsers offer only over HTTPS. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}

/**
 * Whether a call can be retried without doing anything twice: it was refused unread, has an idempotency key, or is
 * idempotent. With `if-match`, a second attempt would fail.
 */
function isSafe(
  { method = 'GET', body, idempotencyKey, headers = {} }: Call,
  error: unknown,
  gone: unknown,
): boolean {
  if (isStream(body)) return false;
  if (error instanceof RateLimited) return true;
  const { status } = error as FlowhookError;
  const isPassing = error instanceof Unavailable || status === 0 || status === 500;
  const isRepeatable = IDEMPOTENT.test(method) && headers['if-match'] === undefined;
  return isPassing && (isRepeatable || idempotencyKey !== undefined || gone !== undefined);
}

/** Without DELETE, whose second attempt returns 404. */
const IDEMPOTENT = /^(GET|HEAD|PUT)$/;

function isJson({ headers }: Response): boolean {
  return headers.get('content-type')?.includes('json') ?? false;
}

/** Whether the response is HTML, which the service's API never sends. */
function isPage({ headers }: Response): boolean {
  return /^(text\/html|application\/xhtml)/i.test(headers.get('content-type') ?? '');
}

/** Undefined in browsers, which send their own. */
function userAgent(own: string | undefined): string | undefined {
  const runtime = (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent;
  return runtime?.startsWith('Mozilla/')
    ? undefined
    : `${own === undefined ? '' : `${own} `}flowhook-client/${VERSION}`;
}

/** Exponential backoff with full jitter, added to `retry-after`, so that many clients do not retry at the same time. */
function waitBefore(error: unknown, failures: number): number {
  const ceiling = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  return ((error as FlowhookError).retryAfterMs ?? 0) + Math.random() * ceiling;
}

function isStream(body: Body | undefined): boolean {
  // Node loads its streams of the web when their name is used, which takes a command 1 ms.
  return typeof body === 'object' && body instanceof ReadableStream;
}

function pathOf({ path, query = {} }: Call): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    if (typeof value === 'object' && 'each' in value) for (const one of value.each) pairs.append(name, one);
    else pairs.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  const text = pairs.toString();
  return text === '' ? path : `${path}?${text}`;
}
