/** Routes, the lines of the table in `routes.ts`, and the operations that answer them. */
import type { ErrorCode } from '../model/error.ts';
import type { Weight } from '../model/load-limit.ts';
import type { Scope } from '../model/team.ts';
import type { JsonSchema } from '../std/shape.ts';
import type { Caller } from '../teams/keys.ts';
import type { Reply, Request } from './server/exchange.ts';
import type { Services } from './services.ts';

/**
 * One line of the table. The scope `any` accepts every valid key. A GET also answers HEAD, and every path answers
 * OPTIONS. `bySession`: authenticated by a session of the dashboard instead of a key.
 */
export type Route = { method: Method; path: string; bySession?: true } & (
  | { scope: Scope | 'any'; operation: Operation<KeyedCall<keyof Services>> }
  | { scope: null; operation: Operation<Call<keyof Services>> }
);

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** What an operation takes. Whatever else is sent is refused, by `strict.ts`. */
export interface Declared {
  parameters?: readonly Parameter[];
  requestBody?: { required: boolean; content: Contents };
  /** One of the contract: it ignores what it does not know, and answers with the contract's statuses only. */
  frozen?: true;
  /** A page or a receiver, which takes any query and any body. */
  open?: true;
  /** Fields that belong elsewhere, with the sentence that refuses each; a frozen operation refuses them as well. */
  misplaced?: Readonly<Record<string, string>>;
}

/** Answers a route, and describes it for OpenAPI. */
export interface Operation<C extends Call> extends Declared {
  /** The `operationId` in OpenAPI; unique. */
  id: string;
  group: 'Workflows' | 'Integrations' | 'Events' | 'Inspectors' | 'Jobs' | 'Team' | 'Service';
  summary: string;
  description?: string;
  /** It answers with `sendWithETag`. */
  etag?: true;
  /** How it is treated under overload; `brief` by default. */
  weight?: Weight;
  /** The request timeout does not apply to its body: the operation bounds that by itself. */
  streamsBody?: true;
  /** The 200. */
  answer: Answer;
  /** Further answers that are no errors, by status or `default`. */
  otherAnswers?: Readonly<Record<string, Answer>>;
  /** Its errors, besides an invalid key. */
  errors?: Readonly<Partial<Record<ErrorCode, Refusal>>>;
  /**
   * Answers a call whose route, method and key have been checked. What it returns is sent as JSON with status 200,
   * unless it sends the reply itself and returns that.
   *
   * @throws Problem for every error: nothing else chooses an error status
   */
  handle(call: C): Promise<unknown>;
}

/** Describes an error: a sentence, and the headers it carries. Its status is in `model/error.ts`. */
export type Refusal = string | { description: string; headers: Readonly<Record<string, string>> };

/** A parameter, as OpenAPI describes one. */
export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description: string;
  schema: JsonSchema;
  example?: unknown;
}

/** The forms of a body by content type. */
export type Contents = Readonly<Record<string, { schema: JsonSchema; example?: unknown }>>;

/** An answer, as OpenAPI describes one. */
export interface Answer {
  description: string;
  headers?: Readonly<Record<string, object>>;
  content?: Contents;
}

/** Describes a parameter in the path. */
export function pathParameter(name: string, description: string): Parameter {
  return { name, in: 'path', required: true, description, schema: { type: 'string' } };
}

/**
 * A request, as an operation gets it. The body is not read yet: see `bodyFields`.
 *
 * @typeParam Needs what it uses of the service, besides the store and the log
 */
export interface Call<Needs extends keyof Services = never> {
  services: Pick<Services, 'store' | 'log' | Needs>;
  operation: Declared;
  /** The path's parameters, percent-decoded once; undefined where the encoding is invalid. */
  params: Readonly<Record<string, string | undefined>>;
  /** Before the question mark, not decoded. */
  path: string;
  /** What follows the question mark, not decoded. */
  query: string;
  /** Its `traceparent`, passed on to the job that it queues. */
  trace: string | null;
  request: Request;
  reply: Reply;
}

/** A call that is authenticated and has the route's scope. */
export interface KeyedCall<Needs extends keyof Services = never> extends Call<Needs> {
  caller: Caller;
}

/** Makes a line of the table. With a scope, the operation gets a `KeyedCall`. */
export function route<S extends Scope | 'any' | null>(
  method: Method,
  path: string,
  scope: S,
  operation: Operation<S extends null ? Call<keyof Services> : KeyedCall<keyof Services>>,
): Route {
  return { method, path, scope, operation } as Route;
}
