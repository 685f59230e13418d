/** Sends calls: adds the key, limits their time, retries where that is safe, and throws errors by class. */
import { errorOf, FlowhookError, RateLimited, TimedOut, Unavailable } from './errors.ts';

/** What every call takes. */
export interface CallOptions {
  /** Ends the call; its reason is thrown. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for one attempt; of a stream, for each wait for more data. Overrides the client's. */
  timeoutMs?: number | undefined;
}

/** Options of calls that create something, and that the service carries out once for each key. */
export interface KeyedOptions extends CallOptions {
  /**
   * A call with the same key within 24 hours is answered as the first one was, and creates nothing. A random key unless
   * told, so that a call that is retried creates one thing only.
   */
  idempotencyKey?: string | undefined;
}

/** Not `BodyInit`, which the types of some runtimes lack. */
export type Body = string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;

export interface Call extends CallOptions {
  /** GET unless told. */
  method?: string;
  /** Such as `/v1/jobs`. */
  path: string;
  /** Times are sent as ISO 8601, lists with commas between. */
  query?: Readonly<Record<string, string | number | boolean | Date | readonly string[] | undefined>>;
  headers?: Readonly<Record<string, string | undefined>>;
  /** Sent as JSON. */
  json?: unknown;
  body?: Body;
  /** Makes a POST safe to repeat. */
  idempotencyKey?: string | undefined;
}

export interface TransportOptions {
  url: string;
  key?: string;
  fetch?: typeof fetch;
  timeoutMs?: number;
  retries?: number;
  userAgent?: string;
  onResponse?: (response: Response, call: Call) => void;
}

/** As package.json has it; a test compares the two. */
export const VERSION = '0.1.0';

const TIMEOUT_MS = 30_000;
const RETRIES = 2;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** When the service asks for a longer wait than this, the error is thrown instead. */
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
    this.#key = options.key;
    // As a function of the global object: browsers refuse to call it as a method of another one.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#retries = options.retries ?? RETRIES;
    this.#userAgent = userAgent(options.userAgent);
    this.#onResponse = options.onResponse;
  }

  /**
   * An answer whose body is JSON.
   *
   * @param gone makes a DELETE one that is retried: the value when a retry finds nothing, since the attempt before it may
   * have removed it; null: that throws
   */
  json<T>(call: Call, gone?: T | null): Promise<T> {
    return this.#repeat(call, (response) => this.#parse<T>(response), gone);
  }

  /** The same, with the headers. */
  answer<T>(call: Call): Promise<{ value: T; headers: Headers }> {
    return this.#repeat(call, async (response) => {
      return { value: await this.#parse<T>(response), headers: response.headers };
    });
  }

  /** An answer without a value but that it is done. */
  remove(call: Call): Promise<{ message: string }> {
    return this.json({ ...call, method: 'DELETE' }, { message: 'Removed' });
  }

  /** A response whose body is read as it arrives. 304 counts as success. A page for people does not. */
  stream(call: Call): Promise<Response> {
    return this.#repeat(call, async (response) => response);
  }

  /** How long a stream may keep its reader waiting, in milliseconds; 0: no limit. */
  patienceMs({ timeoutMs }: CallOptions): number {
    return timeoutMs ?? this.#timeoutMs;
  }

  async #parse<T>(response: Response): Promise<T> {
    const text = await response.text();
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      // Of JSON that ends too early the rest may come with the next attempt.
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
        // By the word of the service: a proxy's 404 says nothing.
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
        message: `The service ${this.#url} cannot be reached, or broke off its answer`,
        status: 0,
        code: 'unreachable',
        cause,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Something else answers at this address, or a proxy in front of the service does. */
  #notOurs(response: Response, cause?: unknown): FlowhookError {
    const { status, headers } = response;
    response.body?.cancel().catch(() => {});
    const type = headers.get('content-type') ?? 'no content type';
    const message =
      `${this.#url} answered ${status} with ${type} in place of JSON: this is not Flowhook, or a proxy answered. ` +
      'Correct `url`';
    const refusal = { message, status, code: 'not_json', cause };
    // A proxy may have its service back soon.
    return status >= 502 && status <= 504 ? new Unavailable(refusal) : new FlowhookError(refusal);
  }

  #init({ method = 'GET', headers = {}, json, body, idempotencyKey }: Call): RequestInit {
    // Not `Headers`, which make Node load all of its HTTP client: 45 ms, also where `fetch` is another one.
    const all: Record<string, string> = {};
    if (this.#key !== undefined) all['x-api-key'] = this.#key;
    if (this.#userAgent !== undefined) all['user-agent'] = this.#userAgent;
    if (json !== undefined) all['content-type'] = 'application/json';
    if (idempotencyKey !== undefined) all['idempotency-key'] = idempotencyKey;
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) all[name] = value;
    const sent = json === undefined ? body : JSON.stringify(json);
    return {
      method,
      headers: all,
      // A redirect would carry the key to wherever it leads.
      redirect: 'manual',
      // Not in the types of all runtimes: Node and Chrome want it for a body that is a stream.
      ...(isStream(sent) ? { duplex: 'half' } : {}),
      ...(sent === undefined ? {} : { body: sent }),
    };
  }
}

/** One attempt or wait took longer than it may. */
export function timedOut(timeoutMs: number, cause?: unknown): TimedOut {
  return new TimedOut({
    message: `No answer within ${timeoutMs} ms`,
    status: 0,
    code: 'timed_out',
    cause,
  });
}

/** Waits; rejects early with the reason of the signal. */
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

/** A key of 128 random bits. Not `randomUUID`, which browsers have only over HTTPS. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}

/**
 * Whether retrying cannot do anything twice: the call was refused unread, carries an idempotency key, or does the same
 * however often it arrives. A condition (`if-match`) holds only once.
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

/** DELETE is not among them: it does the same again, and answers otherwise. */
const IDEMPOTENT = /^(GET|HEAD|PUT)$/;

function isJson({ headers }: Response): boolean {
  return headers.get('content-type')?.includes('json') ?? false;
}

/** HTML: for people, never from the service's API. */
function isPage({ headers }: Response): boolean {
  return /^(text\/html|application\/xhtml)/i.test(headers.get('content-type') ?? '');
}

/** Undefined in browsers, which send their own. */
function userAgent(own: string | undefined): string | undefined {
  const runtime = (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent;
  if (runtime?.startsWith('Mozilla/')) return undefined;
  return `${own === undefined ? '' : `${own} `}flowhook-client/${VERSION}`;
}

/** Exponential backoff with full jitter, on top of `retry-after`: many clients do not come back at once. */
function waitBefore(error: unknown, failures: number): number {
  const asked = error instanceof FlowhookError ? error.retryAfterMs : null;
  const ceiling = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  return (asked ?? 0) + Math.random() * ceiling;
}

function isStream(body: Body | undefined): boolean {
  return body instanceof ReadableStream;
}

function pathOf({ path, query = {} }: Call): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) pairs.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  const text = pairs.toString();
  return text === '' ? path : `${path}?${text}`;
}
