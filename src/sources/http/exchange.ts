/**
 * Exchanges requests for responses: a request is checked against robots.txt, authorized and sent, and its response is
 * decoded. If it is known that robots.txt applies, robots.txt is checked before the request. Otherwise, it is checked
 * when a response turns out to be HTML, before this response is used.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { HttpAuth, HttpSource, Parse } from '../../model/http-source.ts';
import { createCookieJar } from '../../net/cookies.ts';
import type { HostTurns } from '../../net/host-turns.ts';
import { createRobots, type RobotsFile } from '../../net/robots.ts';
import type { Redactor } from '../secrets.ts';
import { type Body, openBody } from './body.ts';
import { type Client, type ClientDeps, createClient, type HttpResponse } from './client.ts';
import { FIRST_PAGE, type HttpRequest, pageRequest, SourceError, type Values } from './request.ts';

export interface ConnectDeps {
  dispatcher: Dispatcher;
  /** Per-host request limits, shared by all sources of the server. */
  turns: HostTurns;
  /** The user agent, such as `flowhook/1.2.3`. The rules for its first word, `flowhook`, apply in robots.txt. */
  agent: string;
  signal: AbortSignal;
  log(level: 'debug' | 'info' | 'warn', text: string): void;
  /** In [0, 1) (default: `Math.random`). */
  random?(): number;
  /** Epoch milliseconds (default: `Date.now`). */
  now?(): number;
  wait?(ms: number, signal: AbortSignal): Promise<void>;
  /** Creates the client that sends the requests (default: `createClient`). */
  connect?(deps: ClientDeps): Client;
}

export interface Exchange {
  /** @throws SourceError */
  ask(request: HttpRequest, accepted: readonly number[]): Promise<HttpResponse>;
  /** @throws UnreadableError; SourceError if the response is HTML and robots.txt forbids reading it */
  open(response: HttpResponse, parse: Parse | null): Promise<Body>;
}

/**
 * Maximum number of times that one request is sent with a new token. The limit is needed for a server that is slow and
 * refuses every token.
 */
const MAX_TRIES = 5;

/** @param state the values for the placeholders in requests */
export function connectSource(
  source: HttpSource,
  deps: ConnectDeps & { redactor: Redactor },
  state: Values['state'],
): { exchange: Exchange; wait: ClientDeps['wait'] } {
  const now = deps.now ?? Date.now;
  const wait = deps.wait ?? ((ms, signal) => pause(ms, undefined, { signal }));
  const clientDeps: ClientDeps = {
    ...deps,
    now,
    wait,
    pace: { perHost: source.perHost, delayMs: source.delayMs },
    // `source.answerMs` is undefined in definitions that were stored before this setting existed.
    answerMs: source.answerMs ?? null,
    cookies: source.cookies ? createCookieJar() : undefined,
    trusted: new Set(
      source.urls.map((url) => new URL(pageRequest(source, url, FIRST_PAGE, state).url).origin),
    ),
    random: deps.random ?? Math.random,
  };
  const client = (deps.connect ?? createClient)(clientDeps);
  // The token endpoint is the only trusted origin of the client for tokens. This client sends only token requests, with
  // their own headers.
  const trusted = new Set(source.auth?.type === 'oauth2' ? [new URL(source.auth.tokenUrl).origin] : []);
  const tokens = createClient({ ...clientDeps, trusted });
  const robots = createRobotsCheck({
    setting: source.robots,
    parse: source.parse,
    agent: deps.agent,
    client,
    slowDown: deps.turns.slowDown,
  });
  const auth = createAuthorization(source.auth, { client: tokens, redactor: deps.redactor, now });
  let warned = false;
  const exchange: Exchange = {
    async ask(request, accepted) {
      await robots.before(request.url);
      for (let tries = 1; ; tries++) {
        const signed = await auth.sign(request);
        try {
          return await client.send(signed, { accepted });
        } catch (error) {
          const isRefused = error instanceof SourceError && error.status === 401;
          if (!isRefused || tries === MAX_TRIES || !auth.refused(signed)) throw error;
        }
      }
    },
    async open(response, parse) {
      const body = await openBody(response.body, {
        parse,
        charset: source.charset,
        contentType: response.headers['content-type'] ?? '',
        contentEncoding: response.headers['content-encoding'] ?? '',
        url: response.url,
      });
      if (body.warning !== undefined && !warned) deps.log('warn', body.warning);
      warned ||= body.warning !== undefined;
      await robots.after(response.url, body.parse);
      return body;
    },
  };
  return { exchange, wait };
}

/** How long before its expiry a token is renewed. A token is never renewed before half of its lifetime has passed. */
const EARLY_MS = 60_000;
/** If a token is refused within this time after a renewal, no further renewal is tried. */
const RENEWAL_MS = 10_000;
/** The lifetime of tokens without `expires_in`. */
const LIFE_MS = 300_000;
const MAX_TOKEN_BYTES = 64 * 1024;

interface Authorization {
  /** Adds the credentials to a request. */
  sign(request: HttpRequest): Promise<HttpRequest>;
  /**
   * Call this after a response with status 401.
   *
   * @returns whether to send the request again
   */
  refused(signed: HttpRequest): boolean;
}

/**
 * @param deps.client sends the token requests
 * @param deps.redactor receives all credentials, to mask them
 */
function createAuthorization(
  auth: HttpAuth | null,
  deps: { client: Client; redactor: Redactor; now(): number },
): Authorization {
  const { redactor } = deps;
  function fixed(name: string, value: string, ...secrets: string[]): Authorization {
    redactor.add(value, ...secrets);
    return {
      sign: async (request) => ({ ...request, headers: { ...request.headers, [name]: value } }),
      refused: () => false,
    };
  }
  switch (auth?.type) {
    case undefined:
      return { sign: async (request) => request, refused: () => false };
    case 'bearer':
      return fixed('authorization', `Bearer ${auth.token}`, auth.token);
    case 'basic': {
      const proof = `${auth.username}:${auth.password}`;
      return fixed('authorization', `Basic ${Buffer.from(proof).toString('base64')}`, proof, auth.password);
    }
    case 'header':
      return fixed(auth.name.toLowerCase(), auth.value);
    case 'oauth2':
      return byClientCredentials(auth, deps);
  }
}

/** OAuth 2.0 client credentials, RFC 6749 section 4.4. */
function byClientCredentials(
  auth: Extract<HttpAuth, { type: 'oauth2' }>,
  { client, redactor, now }: { client: Client; redactor: Redactor; now(): number },
): Authorization {
  let token: Promise<{ value: string; until: number }> | undefined;
  let current: string | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;

  async function ask(): Promise<{ value: string; until: number }> {
    const form = new URLSearchParams({ grant_type: 'client_credentials' });
    if (auth.scope !== null) form.set('scope', auth.scope);
    if (auth.audience !== null) form.set('audience', auth.audience);
    const [id, secret] = [auth.clientId, auth.clientSecret].map((text) => encodeURIComponent(text));
    redactor.add(`${id}:${secret}`, auth.clientSecret);
    const response = await client.send({
      method: 'POST',
      url: auth.tokenUrl,
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
        'accept-encoding': 'identity',
      },
      body: form.toString(),
    });
    let text = '';
    for await (const chunk of response.body) {
      text += String(chunk);
      if (text.length > MAX_TOKEN_BYTES) break;
    }
    let said: { access_token?: unknown; expires_in?: unknown } = {};
    try {
      said = JSON.parse(text) as typeof said;
    } catch {
      // The error is thrown below. It does not contain the text, because the text may hold a token.
    }
    if (typeof said.access_token !== 'string') {
      throw new SourceError(`${auth.tokenUrl} returned ${response.status} without an \`access_token\``);
    }
    redactor.add(said.access_token);
    current = said.access_token;
    const life = Number(said.expires_in ?? Number.NaN) * 1_000 || LIFE_MS;
    return { value: said.access_token, until: now() + Math.max(life - EARLY_MS, life / 2) };
  }

  return {
    async sign(request) {
      if (token !== undefined && (await token).until <= now()) token = undefined;
      token ??= ask();
      const { value } = await token;
      return { ...request, headers: { ...request.headers, authorization: `Bearer ${value}` } };
    },
    refused({ headers }) {
      // When several concurrent requests are refused, the first of them has already renewed the token.
      if (headers.authorization !== `Bearer ${current}`) return true;
      // If the server refuses a new token, it would refuse the next token too.
      if (now() - renewedAt < RENEWAL_MS) return false;
      renewedAt = now();
      token = undefined;
      current = undefined;
      return true;
    },
  };
}

const MAX_ROBOTS_BYTES = 512 * 1024;

interface RobotsCheck {
  /**
   * Call this before a request.
   *
   * @throws SourceError that names the rule that forbids the request
   */
  before(url: string): Promise<void>;
  /**
   * Call this with the format of the response.
   *
   * @throws SourceError that names the rule that forbids the request
   */
  after(url: string, parse: Parse): Promise<void>;
}

/** @param options.setting if null, robots.txt applies only to HTML */
function createRobotsCheck(options: {
  setting: HttpSource['robots'];
  agent: string;
  client: Client;
  /** Called with the `Crawl-delay` of a host. */
  slowDown(host: string, delayMs: number): void;
  parse?: Parse | null;
}): RobotsCheck {
  const robots = createRobots({
    agent: options.agent.split('/')[0] as string,
    read: (url) => readRobots(options.client, url),
  });
  let respects = options.setting === 'respect' || (options.setting === null && options.parse === 'html');

  async function ask(url: string): Promise<void> {
    const verdict = await robots.verdict(url);
    if (!verdict.allowed) throw new SourceError(verdict.why);
    if (verdict.delayMs > 0) options.slowDown(new URL(url).host, verdict.delayMs);
  }

  return {
    async before(url) {
      if (respects) await ask(url);
    },
    async after(url, parse) {
      if (options.setting === 'ignore') return;
      respects ||= parse === 'html';
      // This check is needed even after `before`, because redirects may have led to another host.
      if (respects) await ask(url);
    },
  };
}

/**
 * RFC 9309, section 2.3.1: after a 4xx response there are no rules, and a 5xx response forbids all requests. Reading
 * the first 500 KiB of the file is enough.
 */
async function readRobots(client: Client, url: string): Promise<RobotsFile> {
  try {
    const response = await client.send(
      {
        method: 'GET',
        url,
        headers: { accept: 'text/plain, */*;q=0.5', 'accept-encoding': 'identity' },
        body: null,
      },
      { accepted: [400, 401, 403, 404, 405, 406, 410, 451] },
    );
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response.body) {
      chunks.push(chunk as Buffer);
      bytes += (chunk as Buffer).length;
      if (bytes > MAX_ROBOTS_BYTES) break;
    }
    if (response.status >= 400) return { none: true };
    return { text: Buffer.concat(chunks).toString() };
  } catch (error) {
    const { status, message } = error as SourceError;
    if (status !== undefined && status < 500 && status !== 429) return { none: true };
    return { unreachable: message };
  }
}
