/** Dashboard sessions: signing in with a key or a link, authentication of requests, signing out. */
import { type Author, OF_INSTANCE } from '../../model/audit.ts';
import { found, Problem } from '../../model/error.ts';
import { allows, type RequiredScope, SESSION_MS, scopeWords } from '../../model/team.ts';
import { subscriberOf } from '../../net/host.ts';
import type { Logger } from '../../observe/log.ts';
import { toIso } from '../../std/clock.ts';
import { anyObject } from '../../std/shape.ts';
import type { Store } from '../../store/store.ts';
import { type Caller, callerOf } from '../../teams/keys.ts';
import type { Sessions, SignedIn, Started } from '../../teams/sessions.ts';
import { bodyFields, hasBody } from '../input/body.ts';
import { invalid } from '../input/values.ts';
import { RateLimitWindow } from '../limits/rate-limits.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type Call, type Route, route } from '../route.ts';
import { authorOf, clientAddress } from '../server/caller.ts';
import type { Reply, Request } from '../server/exchange.ts';

/**
 * As large as headers may be, so that every key fits. Anybody can send this body without a key, and a larger limit
 * would let them use more memory per connection.
 */
const MAX_SIGN_IN_BYTES = 16 * 1_024;
/** Failed sign-ins from one address. Keys cannot be guessed, so the limit only bounds the cost of attempts. */
const FAILURES = { count: 10, windowMs: 60_000 };
const MAX_ADDRESSES = 10_000;

const COOKIE = 'flowhook_session';
/** 32 bytes in base64url. */
const SECRET = /^[\w-]{43}$/;
/** Content types that any page can send with a plain form, without a preflight request. They are refused. */
const FORM_TYPES = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(?:;|$)/i;

/** The secret in the cookie of a request; undefined if there is no well-formed secret. */
export function sessionSecret({ headers }: Pick<Request, 'headers'>): string | undefined {
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [name = '', value = ''] = pair.trim().split('=', 2);
    if (name === COOKIE && SECRET.test(value)) return value;
  }
  return undefined;
}

export class SessionRoutes {
  readonly #sessions: Sessions;
  readonly #publicUrl: () => string;
  readonly #limit = new SignInLimit();
  readonly #refused: RefusedSignIns;

  /** @param input.publicUrl where clients reach this service */
  constructor(input: { store: Store; log: Logger; sessions: Sessions; publicUrl: () => string }) {
    this.#sessions = input.sessions;
    this.#publicUrl = input.publicUrl;
    this.#refused = new RefusedSignIns(input.store, input.log);
  }

  routes(): Route[] {
    const answer = jsonResponse('The current session', anyObject());
    const common = { group: 'Service', answer } as const;
    return [
      route('GET', '/ui/api/session', null, {
        ...common,
        id: 'readSession',
        summary: 'The current session',
        handle: async (call) => shown(call, await this.#signedIn(call)),
      }),
      route('POST', '/ui/api/session', null, {
        ...common,
        id: 'beginSession',
        summary: 'Signs in with a `key`, or with the `token` of a one-time link',
        requestBody: jsonBody({
          type: 'object',
          properties: { key: { type: 'string' }, token: { type: 'string' } },
        }),
        handle: (call) => this.#begin(call),
      }),
      route('DELETE', '/ui/api/session', null, {
        ...common,
        id: 'endSession',
        summary: 'Signs out',
        handle: (call) => this.#end(call),
      }),
    ];
  }

  /** The team of a session that this node has seen before. The session is not checked. */
  teamOf(secret: string): string | undefined {
    return this.#sessions.teamOf(secret);
  }

  /**
   * The caller of a request below `/ui/api/v1/`, which uses a session instead of a key.
   *
   * @throws Problem `origin_refused` if the request comes from a page of another origin; `session_missing`;
   *   `scope_missing`
   */
  async authenticate(exchange: { request: Request; reply: Reply }, scope: RequiredScope): Promise<Caller> {
    this.#requireOwnOrigin(exchange.request);
    const { key, secret } = await this.#signedIn(exchange);
    if (!allows(key.scopes, scope)) {
      throw new Problem('scope_missing', {
        sentence: `The key that you signed in with does not have the scope ${scopeWords(scope)}, which this operation requires`,
      });
    }
    return callerOf(key, (options) => this.#sessions.isAlive(secret, options));
  }

  async #begin(call: Call): Promise<unknown> {
    const { request, reply } = call;
    this.#requireOwnOrigin(request);
    const { key, token } = await bodyFields(call, 'the key, or the token of a link', MAX_SIGN_IN_BYTES);
    if (key !== undefined && token !== undefined) invalid('Send `key` or `token`, not both');
    const signedIn = await this.#tried(call, token === undefined ? { key } : { token });
    const before = sessionSecret(request);
    if (before !== undefined) await this.#sessions.end(before);
    this.#keepSecret(reply, signedIn.secret);
    return shown(call, signedIn);
  }

  async #end({ request, reply }: Call): Promise<Reply> {
    this.#requireOwnOrigin(request);
    const secret = sessionSecret(request);
    if (secret !== undefined) await this.#sessions.end(secret);
    this.#setCookie(reply, '; Max-Age=0');
    return reply.code(204);
  }

  /** Signs in. An attempt is counted before it is checked, so that concurrent attempts cannot exceed the limit. */
  async #tried(
    { services, request }: Call,
    { key, token }: { key?: unknown; token?: unknown },
  ): Promise<Started> {
    const value = token ?? key;
    if (typeof value !== 'string')
      return invalid(`\`${token === undefined ? 'key' : 'token'}\` must be a string`);
    const address = clientAddress(request);
    const waitMs = this.#limit.take(address, services.store.now());
    if (waitMs > 0) {
      throw new Problem('sign_in_limited', { headers: { 'retry-after': String(Math.ceil(waitMs / 1_000)) } });
    }
    const author = authorOf(request, { kind: 'session', id: null });
    const signedIn =
      token === undefined
        ? await this.#sessions.begin(value.trim(), author)
        : await this.#sessions.redeem(value, author);
    if (signedIn === undefined) {
      await this.#refused.note({ ...author, kind: 'unknown' });
      throw new Problem(token === undefined ? 'key_refused' : 'link_refused');
    }
    this.#limit.give(address);
    return signedIn;
  }

  async #signedIn({ request, reply }: { request: Request; reply: Reply }): Promise<Started> {
    const secret = sessionSecret(request);
    const found = secret === undefined ? undefined : await this.#sessions.find(secret);
    if (secret === undefined || found === undefined) throw new Problem('session_missing');
    if (found.isRenewed) this.#keepSecret(reply, secret);
    return { ...found, secret };
  }

  /** Sets the cookie for as long as an unused session lasts. */
  #keepSecret(reply: Reply, secret: string): void {
    this.#setCookie(reply, `${secret}; Max-Age=${SESSION_MS / 1_000}`);
  }

  /** Sets a cookie that is sent only below `/ui` and that scripts cannot read. */
  #setCookie(reply: Reply, value: string): void {
    const { protocol, headers } = reply.request;
    const ours = new URL(this.#publicUrl());
    // The client uses TLS if this server or a proxy at the public URL does.
    const isSecure = protocol === 'https' || (ours.protocol === 'https:' && ours.host === headers.host);
    const secure = isSecure ? '; Secure' : '';
    reply.header('set-cookie', `${COOKIE}=${value}; Path=/ui; HttpOnly; SameSite=Strict${secure}`);
  }

  /**
   * Refuses requests from pages of other origins, because browsers send the cookie with requests from any page
   * (cross-site request forgery). Browsers report the origin in `sec-fetch-site` (over TLS and to loopback) and in
   * `origin` (for every write). Reads may have no origin, for example if the user types the address.
   *
   * @throws Problem `origin_refused`, or `content_unsupported` for a body that a form could have sent
   */
  #requireOwnOrigin({ raw, headers, method, protocol, host }: Request): void {
    const { origin, 'sec-fetch-site': site, 'content-type': type } = headers;
    if (method === 'GET' || method === 'HEAD') {
      if (site === 'cross-site' || site === 'same-site') throw new Problem('origin_refused');
      return;
    }
    const ours = [`${protocol}://${host}`, new URL(this.#publicUrl()).origin];
    const isOurs =
      site === undefined ? origin !== undefined && ours.includes(origin) : site === 'same-origin';
    if (!isOurs) throw new Problem('origin_refused');
    if (hasBody(raw) && (type === undefined || FORM_TYPES.test(type))) {
      throw new Problem('content_unsupported', {
        sentence: 'Send the body as JSON, with the header `content-type: application/json`',
      });
    }
  }
}

async function shown({ services: { store } }: Call, { session, key }: SignedIn) {
  const team = found(await store.teams.get({ teamId: session.teamId }), 'session_missing');
  return {
    team: { id: team.id, name: team.slug, slug: team.slug },
    key: { id: key.id, name: key.name, scopes: key.scopes },
    expiresAt: toIso(session.expiresAt),
  };
}

/** Counts failed sign-ins on this node. */
export class SignInLimit {
  readonly #failures = new RateLimitWindow(FAILURES, MAX_ADDRESSES);

  /** Counts an attempt. Returns how many milliseconds the address must wait first; 0 if it may try now. */
  take(address: string, nowMs: number): number {
    const { isWithin, untilMs } = this.#failures.take(subscriberOf(address), nowMs);
    return isWithin ? 0 : untilMs;
  }

  /** Stops counting an attempt that succeeded. */
  give(address: string): void {
    this.#failures.give(subscriberOf(address));
  }
}

const WINDOW_MS = 10 * 60_000;
/** Maximum number of lines that this node writes in one window. Each address gets one line. */
const MAX_LINES = 20;

/** Writes some of the refused sign-ins to the audit log. Not all of them, because anybody can cause any number. */
class RefusedSignIns {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #written = new Set<string>();
  #untilMs = 0;
  /** Refusals since the last line that was written. */
  #skipped = 0;

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** Notes a refused sign-in. Never rejects, because the client must get its error in any case. */
  async note(author: Author): Promise<void> {
    const now = this.#store.now();
    if (now >= this.#untilMs) {
      this.#written.clear();
      this.#untilMs = now + WINDOW_MS;
    }
    const address = author.address ?? '';
    if (this.#written.has(address) || this.#written.size >= MAX_LINES) {
      this.#skipped += 1;
      return;
    }
    this.#written.add(address);
    const summary = this.#skipped === 0 ? '' : `and ${this.#skipped} more before it`;
    this.#skipped = 0;
    const change = { teamId: OF_INSTANCE, action: 'sessions.refused', target: null, summary };
    await this.#store.audit
      .add({ change, author })
      .catch((err) => this.#log.warn({ err }, 'audit.not_written'));
  }
}
