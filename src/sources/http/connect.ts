/** Builds what sends the requests of a source: client, robots.txt check and authorization, as its definition says. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { HttpSource } from '../../model/http-source.ts';
import { createCookieJar } from '../../net/cookies.ts';
import type { HostTurns } from '../../net/host-turns.ts';
import { createAuthorization } from './authorization.ts';
import { type Client, type ClientDeps, createClient } from './client.ts';
import { createExchange, type Exchange } from './exchange.ts';
import type { Values } from './placeholders.ts';
import type { Redactor } from './redactor.ts';
import { FIRST_PAGE, pageRequest } from './request.ts';
import { createRobotsCheck } from './robots-check.ts';

export interface ConnectDeps {
  dispatcher: Dispatcher;
  /** Per-host request limits, shared by all sources of the server. */
  turns: HostTurns;
  /** `flowhook/1.2.3`: the user agent, whose first word is looked up in robots.txt. */
  agent: string;
  signal: AbortSignal;
  log(level: 'debug' | 'info' | 'warn', text: string): void;
  /** In [0, 1); `Math.random` by default. */
  random?(): number;
  /** Epoch milliseconds; `Date.now` by default. */
  now?(): number;
  wait?(ms: number, signal: AbortSignal): Promise<void>;
  /** Makes the client that sends requests; `createClient` by default. */
  connect?(deps: ClientDeps): Client;
}

/** @param state the values of the placeholders of requests */
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
    // Definitions that were applied before this setting existed do not have it.
    answerMs: source.answerMs ?? null,
    cookies: source.cookies ? createCookieJar() : undefined,
    trusted: new Set(
      source.urls.map((url) => new URL(pageRequest(source, url, FIRST_PAGE, state).url).origin),
    ),
    random: deps.random ?? Math.random,
  };
  const client = (deps.connect ?? createClient)(clientDeps);
  // Only token requests go to the token endpoint, and only with their own headers.
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
  const warn = (text: string) => deps.log('warn', text);
  return { exchange: createExchange({ source, client, auth, robots, warn }), wait };
}
