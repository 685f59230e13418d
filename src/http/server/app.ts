/** The HTTP application: serves the table of routes with `node:http`, in the contract's order of checks. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { Readable } from 'node:stream';
import { Problem } from '../../model/error.ts';
import type { Observer } from '../../observe/observer.ts';
import { storedTrace, type Traced, UNTRACED } from '../../observe/trace-context.ts';
import type { Tracing } from '../../observe/tracing.ts';
import { authoredBy } from '../../store/audited.ts';
import { boundUnread, hasBody, holdContinue, isUninvited, refuseBody } from '../input/body.ts';
import { isStrict, refuseUnknownQuery } from '../input/strict.ts';
import { type ConnectionLimits, serverTimeouts, type Timeouts } from '../limits/connections.ts';
import { isRateLimitField, type RateLimits } from '../limits/rate-limits.ts';
import {
  type InFlight,
  leaveConnection,
  mayWaitOnConnection,
  NEW_CALLERS,
  pendingOn,
  RequestTurns,
  retryAfter,
  UNKNOWN_TEAM,
} from '../limits/requests.ts';
import { compressed } from '../negotiate.ts';
import type { KeyedCall, Operation, Route } from '../route.ts';
import type { Services } from '../services.ts';
import { prefersHtml } from '../ui/pages.ts';
import { type SessionRoutes, sessionSecret } from '../ui/session.ts';
import { authenticate, authorOf, hopsTo, keyOf, UNAUDITED } from './caller.ts';
import type { Certificate } from './certificate.ts';
import { createClientErrorHandler, refuseConnect, requireSound } from './client-error.ts';
import { Reply, Request } from './exchange.ts';
import { corsHeaders, FEED_HEADERS, SAFE_HEADERS } from './headers.ts';
import { createMatcher, type Match, splitTarget } from './match.ts';
import { isLoggedElsewhere, isServerError, renderProblem, toProblem, wantsDetails } from './problem.ts';

/** A request in progress, and what is known about it. */
interface Exchange {
  request: Request;
  reply: Reply;
  match: Match | undefined;
  route: Route | undefined;
  path: string;
  query: string;
  /** Whether the target is `*`: the whole server. */
  isServer: boolean;
  /** The hash of the key, or the secret of the session. Undefined if the request has none. */
  credential: string | undefined;
  teamId: string | null;
  keyId: string | null;
  /** What `observeEnd` reports; undefined if nothing is, because the request was refused before it began. */
  began: Began | undefined;
  traced: Traced;
}

interface Began {
  /** Epoch milliseconds. */
  at: number;
  /** Of a monotonic clock. */
  ms: number;
  /** Bytes that had been written to the connection before. */
  sent: number;
}

/** The parts that the server needs, independent of its operations. */
export interface ServerParts extends Pick<Services, 'log' | 'authenticator' | 'trustProxy'> {
  inFlight: InFlight;
  observer: Observer;
  /** Undefined if tracing is off. */
  tracing: Tracing | undefined;
  /** Undefined if the operator has not configured rate limits. */
  rateLimits: RateLimits | undefined;
  connections: ConnectionLimits;
  timeouts: Timeouts;
  /** Whether this node serves the API, or only health checks and metrics. */
  servesApi: boolean;
  /** With a certificate the server uses HTTPS, otherwise HTTP. */
  certificate: Certificate | undefined;
  /** Origins whose pages may call the API from a browser; `*` allows all. */
  corsOrigins: readonly string[];
  /** Undefined if there is no dashboard. */
  sessions: SessionRoutes | undefined;
  /** Parts that hold connections open. They are closed before the server. */
  lasting: readonly { close(): Promise<void> | void }[];
}

export interface App {
  server: Server;
  listen(at: { host: string; port: number; backlog?: number }): Promise<void>;
  /** Ends long calls and stops accepting connections. Resolves when all connections are closed. */
  close(): Promise<void>;
}

const MAX_HEADER_BYTES = 16 * 1_024;
/** A connection without traffic for this long is closed, because a stalled client uses a file descriptor. */
const IDLE_MS = 10 * 60_000;

/** The `allow` header for `OPTIONS *`. */
const ALL_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

const NOT_HERE =
  'This node has no API: it serves only /livez, /readyz and /metrics. Use a node whose FLOWHOOK_ROLE is all or api';

const OVERLOADED = new Problem('overloaded');

/** Builds the application. It does not listen yet. */
export function createApp(parts: ServerParts & { services: Services; routes: readonly Route[] }): App {
  const { services, authenticator, inFlight, rateLimits, connections, corsOrigins, sessions, log } = parts;
  const turns = new RequestTurns();
  const match = createMatcher(parts.routes);
  /** `/` exists only for browsers. */
  const find = (path: string, accept?: string) =>
    path === '/' && !prefersHtml(accept) ? undefined : match(path);
  /** The latest exchange on each connection. It is looked up when the parser reports an error without a request. */
  const latest = new WeakMap<object, Exchange>();

  const handle = (raw: IncomingMessage, response: ServerResponse): void => {
    const { path, query, isServer = false } = splitTarget(raw.url ?? '');
    const found = find(path, raw.headers.accept);
    const { traceparent } = raw.headers;
    const request = new Request(raw, parts.trustProxy);
    const exchange: Exchange = {
      request,
      reply: new Reply(request, response),
      match: found,
      route: found?.known.routes.get(request.method),
      path,
      query,
      isServer,
      credential: undefined,
      teamId: null,
      keyId: null,
      began: undefined,
      traced: parts.tracing?.arrive(typeof traceparent === 'string' ? traceparent : undefined) ?? UNTRACED,
    };
    latest.set(raw.socket, exchange);
    boundUnread(raw, response);
    // `close` follows `finish`, and is also emitted when the client disconnects. It is emitted once.
    response.on('close', () => {
      leaveConnection(response);
      inFlight.remove(response);
      observeEnd(exchange);
    });
    setCommonHeaders(exchange);
    answer(exchange).catch((error) => fail(exchange, error));
  };

  /** The error for a request with no route: unknown path, or unknown method of a known path. */
  const unroutable = (found: Match | undefined): Problem =>
    found === undefined
      ? new Problem('route_not_found', parts.servesApi ? {} : { sentence: NOT_HERE })
      : new Problem('method_not_allowed', { headers: { allow: found.known.allow } });

  /** Sets the headers that every response to this request has, errors included. */
  function setCommonHeaders(exchange: Exchange): void {
    const { request, reply, route } = exchange;
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    // Clients may cache responses with an `ETag`, which replace this `cache-control` header.
    if (route?.scope) {
      reply.header('cache-control', 'private, no-store');
      // After a change of key or session, the cache must not return responses to the previous one.
      reply.vary(route.bySession ? 'cookie' : 'x-api-key');
    }
    if (isOfPages(exchange)) {
      reply.headers(SAFE_HEADERS).header('cache-control', 'no-store');
      return;
    }
    if (route?.path === '/feeds/{feedAddress}') reply.headers(FEED_HEADERS);
    if (corsOrigins.length === 0) return;
    reply.headers(corsHeaders(request.headers.origin, corsOrigins));
    // Caches must not return the response for one origin to another.
    reply.vary('origin');
  }

  async function answer(exchange: Exchange): Promise<void> {
    const { reply } = exchange;
    const result = await respond(exchange);
    if (reply.sent) return;
    const sending = send(exchange, result === reply ? reply.body : result);
    if (sending !== undefined) await sending;
  }

  /** @returns the reply, a value to send as JSON, or a promise of either */
  function respond(exchange: Exchange): unknown {
    const { request, reply, route } = exchange;
    const weight = route?.operation.weight ?? 'brief';
    // The request is refused before anything is logged, because under overload a log line per request would cost more
    // than the refusal.
    if (!mayWaitOnConnection(reply.raw)) return refuse(exchange).header('connection', 'close');
    exchange.credential = route?.bySession ? sessionSecret(request) : keyOf(request.raw);
    const team = assumedTeam(exchange);
    if (!inFlight.admits(weight, team)) return Promise.resolve(turns.take(team)).then(() => refuse(exchange));
    inFlight.add(reply.raw, weight, team);
    exchange.began = { at: services.store.now(), ms: performance.now(), sent: request.socket.bytesWritten };
    if (!isHealth(exchange)) rateLimits?.countAddress(request, reply);
    requireSound(request.raw);
    return route === undefined ? answerOptions(exchange) : callOperation(exchange, route);
  }

  async function callOperation(exchange: Exchange, route: Route): Promise<unknown> {
    const { request, reply, path, query } = exchange;
    const { operation } = route;
    const { weight = 'brief' } = operation;
    const hops = route.scope === null ? 0 : hopsTo(request.raw, route);
    const trace = storedTrace(exchange.traced.trace, hops);
    const params = exchange.match?.params ?? {};
    if (route.scope === null) {
      const call = { services, operation, params, path, query, trace, request, reply };
      const turn = weight === 'light' ? undefined : turns.take(UNKNOWN_TEAM);
      if (turn !== undefined) await turn;
      refuseUnknownQuery(operation, query);
      if (refusesBody(request, route)) await refuseBody(call);
      return await route.operation.handle(call);
    }
    const known =
      route.bySession && sessions !== undefined
        ? sessions.authenticate(exchange, route.scope)
        : authenticate(authenticator, exchange.credential, route.scope);
    const caller = known instanceof Promise ? await known : known;
    exchange.teamId = caller.teamId;
    exchange.keyId = caller.keyId;
    const isAdmitted = inFlight.count(reply.raw, weight, caller.teamId);
    // Refused requests are counted, but not logged.
    if (!isAdmitted) exchange.began = undefined;
    if (isAdmitted) rateLimits?.countKey(caller.keyId, reply);
    const turn = turns.take(caller.teamId);
    if (turn !== undefined) await turn;
    if (!isAdmitted) return refuse(exchange);
    refuseUnknownQuery(operation, query);
    if (refusesBody(request, route)) await refuseBody({ request, operation });
    const call = { services, operation, params, path, query, trace, request, reply, caller };
    const { operation: keyed } = route as { operation: Operation<KeyedCall> };
    // GETs change nothing and are not audited.
    if (route.method === 'GET' || operation.id in UNAUDITED) return await keyed.handle(call);
    const author = authorOf(request, { kind: route.bySession ? 'session' : 'key', id: caller.keyId });
    const store = authoredBy(services.store, author);
    const { webhooks, erasure } = services;
    const audited = { ...services, store, webhooks: { ...webhooks, store }, erasure: { ...erasure, store } };
    return await keyed.handle({ ...call, services: audited });
  }

  /** Responds to OPTIONS, which every path has. @throws Problem for every other request without a route */
  function answerOptions(exchange: Exchange): Reply {
    const { request, reply, match: found } = exchange;
    const allow = exchange.isServer ? ALL_METHODS : found?.known.allow;
    if (allow === undefined || request.method !== 'OPTIONS') throw unroutable(found);
    const cors = isOfPages(exchange) ? {} : corsHeaders(request.headers.origin, corsOrigins, allow);
    return reply.code(204).headers({ allow, ...cors });
  }

  function refuse({ request, reply }: Exchange): Reply {
    const { status, headers, body } = renderProblem(OVERLOADED, answerTo(request, undefined));
    // Refused requests are not in flight, so draining does not close their connections.
    if (inFlight.isDraining) reply.header('connection', 'close');
    return reply
      .code(status)
      .headers({ ...headers, 'retry-after': retryAfter() })
      .send(body);
  }

  /** Returns a promise only if the body must be compressed first. */
  function send(exchange: Exchange, body: unknown): Promise<void> | undefined {
    const { request, reply } = exchange;
    let sent: string | Uint8Array | Readable | undefined;
    if (typeof body === 'string' || body instanceof Uint8Array || body instanceof Readable) sent = body;
    else if (body !== undefined) sent = JSON.stringify(body);
    if (sent !== undefined && !reply.hasHeader('content-type')) reply.type('application/json; charset=utf-8');
    // The connection is closed, because the client may still send the body or skip it, and the server could not
    // distinguish the body from the next request.
    if (isUninvited(request.raw)) reply.header('connection', 'close');
    const failed = (error: unknown) => fail(exchange, error);
    const bytes = typeof sent === 'string' ? compressed(request, reply, sent) : sent;
    if (bytes instanceof Promise) return bytes.then((short) => reply.write(short, failed));
    reply.write(bytes, failed);
    return undefined;
  }

  function fail(exchange: Exchange, error: unknown): void {
    const { request, reply, route, match: found, traced } = exchange;
    const problem = toProblem(error);
    // If the client has disconnected, the disconnection caused the error.
    if (isServerError(problem) && !isLoggedElsewhere(problem) && !request.socket.destroyed) {
      const err = problem.cause ?? problem;
      const { traceId } = traced.trace ?? {};
      log.error({ err, route: found?.known.path ?? null, requestId: request.id, traceId }, 'request.failed');
    }
    if (problem.code === 'unauthorized') rateLimits?.countWrongKey(request, reply);
    if (reply.sent || reply.raw.headersSent) {
      reply.raw.destroy();
      return;
    }
    const { status, headers, body } = renderProblem(problem, answerTo(request, route));
    // Removes headers of the response that the error replaces, such as its encoding and its ETag.
    for (const name of Object.keys(reply.getHeaders())) if (!isRateLimitField(name)) reply.removeHeader(name);
    setCommonHeaders(exchange);
    reply.code(status).headers(headers);
    Promise.try(send, exchange, body).catch(() => reply.raw.destroy());
  }

  /**
   * The team that a request is counted for before its key is checked. The team is known if the key or session was used
   * before.
   */
  function assumedTeam({ route, credential }: Exchange): string {
    if (credential === undefined) return UNKNOWN_TEAM;
    const known = route?.bySession ? sessions?.teamOf(credential) : authenticator.teamOf(credential);
    return known ?? NEW_CALLERS;
  }

  /**
   * Reports the end of a request: method, path pattern, status, team and key id; `aborted` if the client disconnected or
   * an error interrupted the response. Never the key, and never the actual path, which may contain personal data.
   */
  function observeEnd({ request, reply, match: found, began, teamId, keyId, traced }: Exchange): void {
    if (began === undefined) return;
    const { raw } = reply;
    const code = reply.getHeader('x-error-code');
    parts.observer.requestDone?.({
      requestId: request.id,
      method: request.method,
      route: found?.known.path ?? null,
      status: raw.statusCode,
      startedAt: began.at,
      durationMs: performance.now() - began.ms,
      sentBytes: request.socket.bytesWritten - began.sent,
      teamId,
      keyId,
      errorCode: typeof code === 'string' ? code : null,
      aborted: !raw.writableFinished,
      ...traced,
    });
  }

  const server = createHttpServer(parts, handle);
  const unknownMethod = (target: string): Problem => unroutable(find(splitTarget(target).path));
  server.on(
    'clientError',
    createClientErrorHandler({
      responseOn: (socket) => latest.get(socket)?.reply.raw,
      unknownMethod,
      isFrozen: (method, target) => isOfContract(find(splitTarget(target).path)?.known.routes.get(method)),
      streamsBody(socket) {
        // `teamId` is set only for a valid key.
        const exchange = latest.get(socket);
        return exchange?.route?.operation.streamsBody === true && exchange.teamId !== null;
      },
      log,
    }),
  );
  server.on('connect', refuseConnect({ unknownMethod, pendingOn }));
  holdContinue(server);
  parts.certificate?.follow(server);
  connections.follow(server);

  return {
    server,
    async listen(at) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      server.once('error', reject).listen(at, () => resolve(server.off('error', reject) && undefined));
      await promise;
    },
    async close() {
      // Open streams and long polls would keep the server from closing.
      for (const part of parts.lasting) await part.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function createHttpServer({ certificate, timeouts }: ServerParts, handle: RequestListener): Server {
  const options = {
    maxHeaderSize: MAX_HEADER_BYTES,
    requireHostHeader: false,
    // Requests without a body cost less: Node then neither reads nor closes their stream of bytes.
    optimizeEmptyRequests: true,
    keepAliveTimeout: timeouts.keepAliveMs,
    ...serverTimeouts(timeouts),
  };
  const server =
    certificate === undefined
      ? createServer(options, handle)
      : createSecureServer({ ...options, ...certificate.pair }, handle);
  return server.setTimeout(IDLE_MS);
}

/** Whether the request has a body although its operation takes none. `bodyFields` checks the fields of other bodies. */
function refusesBody(request: Request, { method, operation }: Route): boolean {
  const takesNone = method !== 'GET' && operation.requestBody === undefined;
  return takesNone && isStrict(operation) && hasBody(request.raw);
}

/** How to render an error of a request. */
function answerTo({ headers, id }: Request, route: Route | undefined) {
  const isFrozen = isOfContract(route);
  return { isFrozen, detailsOf: !isFrozen && wantsDetails(headers.accept) ? id : undefined };
}

/** Whether the contract defines the errors of a route: its statuses, and bodies of only `{ "error": … }`. */
function isOfContract(route: Route | undefined): boolean {
  return route?.operation.frozen === true && route.bySession !== true;
}

/** Health checks are exempt from rate limits. */
function isHealth({ match }: Exchange): boolean {
  return match?.known.path === '/livez' || match?.known.path === '/readyz';
}

/** Whether the path is only for the service's own pages: no CORS, and strict security headers. */
function isOfPages({ match }: Exchange): boolean {
  const path = match?.known.path;
  return path !== undefined && (path.startsWith('/ui/') || path.startsWith('/docs/guide/'));
}
