/** What a route is: a line of the table in `routes.ts`, and the operation that answers it. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../model/error.ts';
import type { Weight } from '../model/load-limit.ts';
import type { Scope } from '../model/team.ts';
import type { Caller } from '../teams/keys.ts';
import type { CallServices } from './app.ts';

/** One line of the table. `any` takes every key that is good, whatever its scopes. A GET also answers HEAD, and every path answers OPTIONS. `bySession`: for those who are signed in to the dashboard, not for keys. */
export type Route = { method: Method; path: string; bySession?: true } & (
  | { scope: Scope | 'any'; operation: Operation<KeyedCall> }
  | { scope: null; operation: Operation<Call> }
);

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** What answers a route, and how it is described to clients. */
export interface Operation<C extends Call> {
  /** Names the operation in the published description; unique. */
  id: string;
  group: 'Workflows' | 'Integrations' | 'Inspectors' | 'Jobs' | 'Team' | 'Service';
  summary: string;
  description?: string;
  parameters?: readonly Parameter[];
  requestBody?: object;
  /** It answers one thing with an `ETag`, and 304 to those who have it. */
  tagged?: true;
  /** What becomes of it when more is asked for than the node can answer; `brief` unless told. */
  weight?: Weight;
  /** Its body may take longer to arrive than others: the operation bounds it by itself. */
  hasTime?: true;
  /** What a 200 holds, as an OpenAPI response object. */
  answer: object;
  /** What it refuses beyond a key that is not good, and the headers that such an answer carries. */
  refusals?: Readonly<Partial<Record<ErrorCode, Refusal>>>;
  /**
   * Answers a call whose route, method and key are known to be right. What it returns is sent as JSON with
   * status 200, unless it has sent the reply itself and returns that.
   *
   * @throws Problem for everything that is refused; nothing else chooses a status
   */
  handle(call: C): Promise<unknown>;
}

/** How a refusal is described: its sentence here, its status in `model/error.ts`. */
export type Refusal = string | { description: string; headers: Readonly<Record<string, string>> };

/** A parameter, as OpenAPI describes one. */
export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description: string;
  schema: object;
}

/** A parameter that is a segment of the path. */
export function pathParameter(name: string, description: string): Parameter {
  return { name, in: 'path', required: true, description, schema: { type: 'string' } };
}

/** One request on its way through an operation. The body is unread: an operation that has one reads it. */
export interface Call {
  services: CallServices;
  /** The path's parameters, percent-decoded once; undefined where they cannot be decoded. */
  params: Readonly<Record<string, string | undefined>>;
  /** What follows the question mark, as it came. */
  query: string;
  /** Its place in a trace, for what it causes: see `store.jobs`. */
  trace: string | null;
  request: FastifyRequest;
  reply: FastifyReply;
}

/** A call with a key that has the route's scope. */
export interface KeyedCall extends Call {
  caller: Caller;
}

/** Makes a line of the table; the scope decides which kind of operation may stand there. */
export function route(
  method: Method,
  path: string,
  scope: Scope | 'any',
  operation: Operation<KeyedCall>,
): Route;
export function route(method: Method, path: string, scope: null, operation: Operation<Call>): Route;
export function route(
  method: Method,
  path: string,
  scope: Scope | 'any' | null,
  operation: Operation<KeyedCall>,
): Route {
  return { method, path, scope, operation } as Route;
}
