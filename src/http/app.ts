/** The HTTP application: the table of routes on Fastify, in the contract's order of checks. */
import type { IncomingMessage } from 'node:http';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { Problem } from '../model/error.ts';
import { storedTrace, type Traced, UNTRACED } from '../observe/trace-context.ts';
import { METHODS } from '../std/http-names.ts';
import { observeEnd } from './access-log.ts';
import { authenticate, keyOf } from './authenticate.ts';
import { auditedAs, authorOf, isAudited } from './author.ts';
import { refuseBody } from './body.ts';
import { type Answering, answerConnect, createClientErrorHandler } from './client-error.ts';
import { compressAnswers } from './compression.ts';
import { holdContinue, isUninvited } from './continue.ts';
import { corsHeaders } from './cors.ts';
import { hopsTo } from './limits/hops.ts';
import { NEW_CALLERS, UNKNOWN_TEAM } from './limits/in-flight.ts';
import { boundUnread } from './limits/linger.ts';
import { retryAfter } from './limits/overload.ts';
import { isRateLimitField } from './limits/rate-limits.ts';
import { RequestTurns } from './limits/request-turns.ts';
import { serverTimeouts } from './limits/timeouts.ts';
import { createMatcher, type Match, splitTarget } from './match.ts';
import { streamMetrics } from './node-metrics.ts';
import { isLoggedElsewhere, isServerError, renderProblem, toProblem, wantsDetails } from './problem.ts';
import { requestIdOf } from './request-id.ts';
import type { Call, KeyedCall, Method, Operation, Route } from './route.ts';
import { routes } from './routes.ts';
import type { CallServices, HttpServices } from './services.ts';
import { requireSound } from './sound-request.ts';
import { EventWaits } from './streams/event-waits.ts';
import { LongCalls } from './streams/long-calls.ts';
import { Streams } from './streams/streams.ts';
import { isStrict, refuseUnknownQuery } from './strict.ts';
import { SAFE_HEADERS } from './ui/page-headers.ts';
import { matchPage, PAGE_ROUTES, routesBySession, SESSION_ROUTES } from './ui/paths.ts';
import { authenticateSession } from './ui/session.ts';
import { sessionSecret } from './ui/session-cookie.ts';
import { addVary } from './vary.ts';

/** What is known of a request before the framework handles it, and what the log needs later. */
export interface Arrival {
  match: Match | undefined;
  route: Route | undefined;
  query: string;
  /** The target is `*`: the server as a whole. */
  isServer: boolean;
  teamId: string | null;
  keyId: string | null;
  /** It was refused because of overload: counted as that only, and not logged. */
  isShed: boolean;
  traced: Traced;
}

const MAX_HEADER_BYTES = 16 * 1_024;
/** The framework validates nothing here: its compilers, with Ajv, would add 40 ms to every start, and 4 MB. */
const NO_SCHEMAS = { buildValidator: noCompiler, buildSerializer: noCompiler };
/** A connection without any traffic for this long is closed: a client that has stalled for good holds a file open. */
const IDLE_MS = 10 * 60_000;

/** What `OPTIONS *` is told. */
const ALL_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

const NOT_HERE =
  'This node has no API: it answers /livez, /readyz and /metrics. Ask one whose FLOWHOOK_ROLE is all or api';

/** Builds the application, which does not listen yet: `app.listen({ host, port })`, `app.close()`. */
export function createApp(services: HttpServices): FastifyInstance {
  const { allRoutes, find, unroutable } = createRouting(services);
  const arrivals = new WeakMap<IncomingMessage, Arrival>();
  const answering: Answering = new WeakMap();
  const turns = new RequestTurns();
  const eventWaits = new EventWaits(services.store);
  const longCalls = new LongCalls(services.store);
  const streams = new Streams({ store: services.store, longCalls, log: services.log });
  if (services.metrics !== undefined) streamMetrics(services.metrics, streams);
  const callServices: CallServices = { ...services, eventWaits, longCalls, streams };

  const unknownMethod = (target: string): Problem => unroutable(find(splitTarget(target).path));

  const { certificate, connections, timeouts } = services;
  const serverOptions = {
    maxHeaderSize: MAX_HEADER_BYTES,
    requireHostHeader: false,
    ...serverTimeouts(timeouts),
  };
  // Typed as an object, so that Fastify's types take an HTTPS server for an HTTP server.
  const secured: object =
    certificate === undefined ? {} : { https: { ...serverOptions, ...certificate.pair } };
  const app = fastify({
    http: serverOptions,
    ...secured,
    schemaController: { compilersFactory: NO_SCHEMAS },
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionTimeout: IDLE_MS,
    trustProxy: services.trustProxy ? services.trustProxy.trusts : false,
    genReqId: requestIdOf,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    clientErrorHandler: createClientErrorHandler({
      answering,
      unknownMethod,
      isFrozen: (method, target) => isOfContract(find(splitTarget(target).path)?.known.routes.get(method)),
      // Only with a valid key.
      hasTime: (request) => {
        const arrival = arrivals.get(request);
        return arrival?.route?.operation.hasTime === true && arrival.teamId !== null;
      },
      log: services.log,
    }),
    // The framework's router sees only the names of routes: `match.ts` has found the route by then.
    rewriteUrl(request) {
      const { path, query, isServer = false } = splitTarget(request.url ?? '');
      const found = find(path, request.headers.accept);
      const route = found?.known.routes.get(request.method ?? '');
      const { traceparent } = request.headers;
      const traced =
        services.tracing?.arrive(typeof traceparent === 'string' ? traceparent : undefined) ?? UNTRACED;
      const unknown = { teamId: null, keyId: null, isShed: false };
      arrivals.set(request, { match: found, route, query, isServer, ...unknown, traced });
      return route === undefined ? '/-' : routerPath(route);
    },
  });
  const arrivalOf = (request: FastifyRequest): Arrival => {
    const arrival = arrivals.get(request.raw);
    if (arrival === undefined) throw new Error('A request went past rewriteUrl');
    return arrival;
  };
  /** The headers of every answer to this request, errors included. */
  const setCommonHeaders = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.headers({ 'x-request-id': request.id, 'x-content-type-options': 'nosniff' });
    const arrival = arrivalOf(request);
    const isOfPages = isOfDashboard(arrival);
    // Answers with an `ETag` may be kept by the client itself: they replace this.
    if (arrival.route?.scope) {
      reply.header('cache-control', 'private, no-store');
      // Whoever changes the key or signs in anew must not be shown what the one before was.
      addVary(reply, arrival.route.bySession ? 'cookie' : 'x-api-key');
    }
    if (isOfPages) {
      reply.headers({ ...SAFE_HEADERS, 'cache-control': 'no-store' });
      return;
    }
    reply.headers(corsHeaders(request.raw, services.corsOrigins));
    // Caches must not give one origin the answer to another.
    if (services.corsOrigins.length > 0) addVary(reply, 'origin');
  };

  // The framework reads no body: operations that need one read it themselves, after the key was checked.
  for (const method of METHODS) {
    if (method !== 'CONNECT') app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
  certificate?.follow(app.server);
  connections.follow(app.server);
  app.server.on('connect', answerConnect(unknownMethod));
  holdContinue(app.server);

  // Open streams and long polls would keep the server from closing.
  app.addHook('preClose', () => eventWaits.close());
  app.addHook('preClose', () => streams.close());
  app.addHook('preClose', async () => services.inspection.close());
  app.addHook('onRequest', async (request, reply) => {
    answering.set(request.raw.socket, reply.raw);
    boundUnread(request.raw, reply.raw);
    const arrival = arrivalOf(request);
    setCommonHeaders(request, reply);
    const weight = arrival.route?.operation.weight ?? 'brief';
    // Refused before anything is logged: under overload a log line for each would cost more than the refusal.
    if (!connections.admits(reply.raw)) return refuse(request, reply.header('connection', 'close'));
    const team = teamOf(services, arrival.route, request);
    if (!services.overload.admits(weight, team)) {
      await turns.take(team);
      return refuse(request, reply);
    }
    services.inFlight.add(reply.raw, weight, team);
    observeEnd({ observer: services.observer, now: () => services.store.now(), request, reply, arrival });
    if (!isHealth(arrival)) services.rateLimits?.countAddress(request, reply);
    requireSound(request.raw);
  });

  compressAnswers(app);
  app.addHook('onSend', async ({ raw }, reply) => {
    // The client may send the body now, or not at all: its next bytes would be taken for either.
    if (isUninvited(raw)) reply.header('connection', 'close');
  });
  for (const route of allRoutes) {
    app.route({
      method: route.method === 'GET' ? ['GET', 'HEAD'] : route.method,
      url: routerPath(route),
      async handler(request, reply) {
        const arrival = arrivalOf(request);
        return callOperation({ services: callServices, turns, route, arrival, request, reply });
      },
    });
  }

  app.setNotFoundHandler(async (request, reply) => {
    const arrival = arrivalOf(request);
    const { match } = arrival;
    const allow = arrival.isServer ? ALL_METHODS : match?.known.allow;
    if (allow === undefined || request.method !== 'OPTIONS') throw unroutable(match);
    const cors = isOfDashboard(arrival) ? {} : corsHeaders(request.raw, services.corsOrigins, allow);
    return reply
      .code(204)
      .headers({ allow, ...cors })
      .send();
  });

  app.setErrorHandler((error, request, reply) => {
    const problem = toProblem(error);
    // When the client has disconnected, the error is only how its work was ended.
    if (isServerError(problem) && !isLoggedElsewhere(problem) && !request.raw.socket.destroyed) {
      const route = arrivalOf(request).match?.known.path ?? null;
      const { traceId } = arrivalOf(request).traced.trace ?? {};
      const err = problem.cause ?? problem;
      services.log.error({ err, route, requestId: request.id, traceId }, 'request.failed');
    }
    if (problem.code === 'unauthorized') services.rateLimits?.countWrongKey(request, reply);
    const { status, headers, body } = renderProblem(problem, answerTo(request, arrivalOf(request).route));
    dropHeaders(reply);
    setCommonHeaders(request, reply);
    return reply.code(status).headers(headers).send(body);
  });

  return app;
}

/** The routes that this node serves, and how one is found. */
function createRouting({ servesApi, ui }: HttpServices) {
  const hasPages = servesApi && ui !== undefined;
  const table = servesApi
    ? [...routes, ...(hasPages ? [...routesBySession(routes), ...SESSION_ROUTES] : [])]
    : routes.filter(({ scope, path }) => scope === null && isOfTheNode(path));
  const match = createMatcher(table);
  return {
    allRoutes: [...table, ...(hasPages ? PAGE_ROUTES : [])],
    find: (path: string, accept?: string): Match | undefined =>
      match(path) ?? (hasPages ? matchPage(path, accept) : undefined),
    /** Why a request cannot be answered whose path was found, without its method, or was not found. */
    unroutable: (found: Match | undefined): Problem =>
      found === undefined
        ? new Problem('route_not_found', servesApi ? {} : { sentence: NOT_HERE })
        : new Problem('method_not_allowed', { headers: { allow: found.known.allow } }),
  };
}

async function callOperation(input: {
  services: CallServices;
  turns: RequestTurns;
  route: Route;
  arrival: Arrival;
  request: FastifyRequest;
  reply: FastifyReply;
}): Promise<unknown> {
  const { services, turns, route, arrival, request, reply } = input;
  const { query, traced } = arrival;
  const hops = route.scope === null ? 0 : hopsTo(request.raw, route);
  const trace = storedTrace(traced.trace, hops);
  const { operation } = route;
  const { weight = 'brief' } = operation;
  const call = { services, operation, params: arrival.match?.params ?? {}, query, trace, request, reply };
  if (route.scope === null) {
    if (weight !== 'light') await turns.take(UNKNOWN_TEAM);
    await refuseUnknown(call, route.method);
    return route.operation.handle(call);
  }
  const { ui } = services;
  const caller =
    route.bySession && ui !== undefined
      ? await authenticateSession(ui, call, route.scope)
      : await authenticate(services.authenticator, request.raw, route.scope);
  arrival.teamId = caller.teamId;
  arrival.keyId = caller.keyId;
  const isAdmitted = services.overload.count(reply.raw, weight, caller.teamId);
  arrival.isShed = !isAdmitted;
  if (isAdmitted) services.rateLimits?.countKey(caller.keyId, reply);
  await turns.take(caller.teamId);
  if (!isAdmitted) return refuse(request, reply);
  await refuseUnknown(call, route.method);
  const { operation: keyed } = route as { operation: Operation<KeyedCall> };
  if (!isAudited(route)) return keyed.handle({ ...call, caller });
  const author = authorOf(request, { kind: route.bySession ? 'session' : 'key', id: caller.keyId });
  return keyed.handle({ ...call, caller, services: auditedAs(services, author) });
}

/** Fields of a body that the operation takes are checked where it is read: see `bodyFields`. */
async function refuseUnknown(call: Call, method: Method): Promise<void> {
  refuseUnknownQuery(call.operation, call.query);
  const takesNone = method !== 'GET' && call.operation.requestBody === undefined;
  if (takesNone && isStrict(call.operation)) await refuseBody(call);
}

/** How an error of a request is to be rendered. */
function answerTo({ headers, id }: FastifyRequest, route: Route | undefined) {
  const isFrozen = isOfContract(route);
  return { isFrozen, detailsOf: !isFrozen && wantsDetails(headers.accept) ? id : undefined };
}

/** Whether it answers as the contract says, with its statuses and nothing but `{ "error": … }`. */
function isOfContract(route: Route | undefined): boolean {
  return route?.operation.frozen === true && route.bySession !== true;
}

const OVERLOADED = new Problem('overloaded');

function refuse(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers, body } = renderProblem(OVERLOADED, answerTo(request, undefined));
  return reply
    .code(status)
    .headers({ ...headers, 'retry-after': retryAfter() })
    .send(body);
}

/** The team of a key or session that was used before, before it is checked: says only for whom the request is counted. */
function teamOf(
  { authenticator, ui }: HttpServices,
  route: Route | undefined,
  request: FastifyRequest,
): string {
  if (route?.bySession) {
    const secret = sessionSecret(request);
    return secret === undefined ? UNKNOWN_TEAM : (ui?.sessions.teamOf(secret) ?? NEW_CALLERS);
  }
  const key = keyOf(request.raw);
  return key === undefined ? UNKNOWN_TEAM : (authenticator.teamOf(key) ?? NEW_CALLERS);
}

/** Removes the headers of an answer that an error replaces, such as its encoding and its ETag. */
function dropHeaders(reply: FastifyReply): void {
  for (const name of Object.keys(reply.getHeaders())) {
    if (isRateLimitField(name)) continue;
    reply.removeHeader(name);
    // The framework has copied them here if a stream failed before its first byte.
    reply.raw.removeHeader(name);
  }
}

/** Whether every node answers this path, whatever its role. */
function isOfTheNode(path: string): boolean {
  return path === '/livez' || path === '/readyz' || path === '/metrics';
}

/** Health checks are exempt from rate limits. */
function isHealth({ match }: Arrival): boolean {
  return match?.known.path === '/livez' || match?.known.path === '/readyz';
}

/** Whether it is for this service's own pages only: no CORS, and strict security headers. */
function isOfDashboard({ match }: Arrival): boolean {
  return /^\/(ui|docs\/guide)\//.test(match?.known.path ?? '');
}

function routerPath({ operation, bySession }: Route): string {
  return bySession ? `/ui/${operation.id}` : `/${operation.id}`;
}

function noCompiler(): never {
  throw new Error('A route has a schema of the framework, which compiles none here');
}
