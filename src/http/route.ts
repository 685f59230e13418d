/** Routes (the lines of the table in `routes.ts`) and their operations. */
import type { ErrorCode } from '../model/error.ts';
import type { Weight } from '../model/load-limit.ts';
import type { RequiredScope } from '../model/team.ts';
import type { JsonSchema } from '../std/shape.ts';
import type { Caller } from '../teams/keys.ts';
import type { Reply, Request } from './server/exchange.ts';
import type { Services } from './services.ts';

/**
 * One line of the table. The scope `any` accepts every valid key. A GET route also serves HEAD, and every path serves
 * OPTIONS. `bySession`: authenticated by a dashboard session instead of a key.
 */
export type Route = { method: Method; path: string; bySession?: true } & (
  | { scope: RequiredScope; operation: Operation<KeyedCall<keyof Services>> }
  | { scope: null; operation: Operation<Call<keyof Services>> }
);

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** The input of an operation. `strict.ts` refuses all other input. */
export interface Declared {
  parameters?: readonly Parameter[];
  requestBody?: { required: boolean; content: Contents };
  /** An operation of the contract: it ignores unknown input and returns only the contract's statuses. */
  frozen?: true;
  /** A page or a receiver, which accepts any query and any body. */
  open?: true;
  /** Fields that belong elsewhere, each with its error sentence. Frozen operations refuse them as well. */
  misplaced?: Readonly<Record<string, string>>;
}

/** Handles a route, and describes it for OpenAPI. */
export interface Operation<C extends Call> extends Declared {
  /** The `operationId` in OpenAPI. */
  id: string;
  group: 'Workflows' | 'Integrations' | 'Events' | 'Inspectors' | 'Jobs' | 'Team' | 'Service';
  summary: string;
  description?: string;
  /** The operation responds with `sendWithETag`. */
  etag?: true;
  /** Decides when requests are refused under overload; default: `brief`. */
  weight?: Weight;
  /** The request timeout does not apply to the request body. The operation sets its own limit. */
  streamsBody?: true;
  /** The response with status 200. */
  answer: Answer;
  /** Other successful responses, by status or `default`. */
  otherAnswers?: Readonly<Record<string, Answer>>;
  /** The errors of the operation, except for an invalid key. */
  errors?: Readonly<Partial<Record<ErrorCode, Refusal>>>;
  /**
   * Handles a call whose route, method and key have been checked. The return value is sent as JSON with status 200,
   * unless the handler returns the `Reply` that it has already sent.
   *
   * @throws Problem for every error: no other code chooses an error status
   */
  handle(call: C): Promise<unknown>;
}

/** Describes an error: a sentence, and its headers. `model/error.ts` has its status. */
export type Refusal = string | { description: string; headers: Readonly<Record<string, string>> };

/** An OpenAPI parameter. */
export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description: string;
  schema: JsonSchema;
  example?: unknown;
}

/** The schemas of a body by content type. */
export type Contents = Readonly<Record<string, { schema: JsonSchema; example?: unknown }>>;

/** An OpenAPI response. */
export interface Answer {
  description: string;
  headers?: Readonly<Record<string, object>>;
  content?: Contents;
}

/** Describes a path parameter. */
export function pathParameter(name: string, description: string): Parameter {
  return { name, in: 'path', required: true, description, schema: { type: 'string' } };
}

/**
 * A request to an operation. Its body has not been read yet: see `bodyFields`.
 *
 * @typeParam Needs the services that the operation uses besides the store and the log
 */
export interface Call<Needs extends keyof Services = never> {
  services: Pick<Services, 'store' | 'log' | Needs>;
  operation: Declared;
  /** Path parameters, percent-decoded once; undefined where the encoding is invalid. */
  params: Readonly<Record<string, string | undefined>>;
  /** The target before the question mark, not decoded. */
  path: string;
  /** The target after the question mark, not decoded. */
  query: string;
  /** The `traceparent` for jobs that the call queues. */
  trace: string | null;
  request: Request;
  reply: Reply;
}

/** An authenticated call whose key has the route's scope. */
export interface KeyedCall<Needs extends keyof Services = never> extends Call<Needs> {
  caller: Caller;
}

/** Makes a line of the table. With a scope, the operation gets a `KeyedCall`. */
export function route<S extends RequiredScope | null>(
  method: Method,
  path: string,
  scope: S,
  operation: Operation<S extends null ? Call<keyof Services> : KeyedCall<keyof Services>>,
): Route {
  return { method, path, scope, operation } as Route;
}
