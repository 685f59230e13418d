/** Sends requests to the service, and turns its errors into errors of n8n. */
import type {
  IDataObject,
  IExecuteFunctions,
  IHookFunctions,
  IHttpRequestMethods,
  ILoadOptionsFunctions,
  IWebhookFunctions,
  JsonObject,
} from 'n8n-workflow';
import { NodeApiError } from 'n8n-workflow';

export type Caller = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions | IWebhookFunctions;

const CREDENTIAL = 'flowhookApi';
const TIMEOUT_MS = 30_000;

export interface Question {
  /** The path, starting with `/v1`, without the query. */
  path: string;
  method?: IHttpRequestMethods;
  query?: IDataObject;
  headers?: IDataObject;
  /** Sent as JSON. */
  body?: unknown;
  timeoutMs?: number;
  /** Statuses from 300 that are not errors. */
  accept?: readonly number[];
  /** The index of the item, for errors. */
  itemIndex?: number;
}

export interface Answer<Body> {
  status: number;
  /** Names in lower case. */
  headers: Readonly<Record<string, string | undefined>>;
  body: Body;
}

/** @throws NodeApiError with the service's own sentence */
export async function ask<Body = IDataObject>(caller: Caller, question: Question): Promise<Answer<Body>> {
  const { path, method = 'GET', query, headers, body, timeoutMs = TIMEOUT_MS, accept = [] } = question;
  const { itemIndex } = question;
  const base = await baseUrl(caller, itemIndex);
  let response: { statusCode: number; headers: Answer<Body>['headers']; body: Body };
  try {
    response = await caller.helpers.httpRequestWithAuthentication.call(
      caller as IExecuteFunctions,
      CREDENTIAL,
      {
        url: base + path,
        method,
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(query === undefined ? {} : { qs: query }),
        // As a string: n8n leaves out empty values of an object.
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        json: true,
        returnFullResponse: true,
        ignoreHttpStatusErrors: true,
        // The key must be sent only to the address that was entered.
        disableFollowRedirect: true,
        timeout: timeoutMs,
      },
    );
  } catch (error) {
    throw new NodeApiError(caller.getNode(), error as JsonObject, {
      message: `Flowhook does not respond at ${base}`,
      description: `${reasonOf(error)}. Check whether n8n can reach this address, and whether it is the base URL of Flowhook`,
      itemIndex,
    });
  }
  const answer = { status: response.statusCode, headers: response.headers, body: response.body };
  if (answer.status < 300 || accept.includes(answer.status)) return answer;
  throw refusal(caller, base, answer, itemIndex);
}

/** The address that was entered, without a trailing slash or `/v1`. */
async function baseUrl(caller: Caller, itemIndex = 0): Promise<string> {
  const { baseUrl: entered } = await caller.getCredentials<{ baseUrl: string }>(CREDENTIAL, itemIndex);
  return String(entered).trim().replace(/\/+$/, '').replace(/\/v1$/, '');
}

function refusal(caller: Caller, base: string, answer: Answer<unknown>, itemIndex?: number): NodeApiError {
  const { status, headers, body } = answer;
  const said = (body as { error?: unknown } | null)?.error;
  const sentence = typeof said === 'string' ? said : undefined;
  const code = headers['x-error-code'];
  let message = sentence ?? `${base} returned ${status}, but it does not look like Flowhook`;
  let description = sentence === undefined ? 'Check the base URL' : undefined;
  if (status < 400) {
    message = `${base} redirects to ${headers.location ?? 'another address'}`;
    description = 'Enter the address that it redirects to as the base URL';
  } else if (code === 'scope_missing') {
    description = 'Use a key with the scopes read, queue and webhooks';
  } else if (status === 401) {
    description = 'The key is incomplete, revoked or expired: enter another key in the credential';
  } else if (headers['retry-after'] !== undefined) {
    description = `Try again in ${headers['retry-after']} s (Settings, Retry On Fail)`;
  }
  const response = {
    message,
    statusCode: status,
    code: code ?? String(status),
    jobId: headers['x-job-id'] ?? null,
  };
  return new NodeApiError(caller.getNode(), response, {
    message,
    description,
    httpCode: String(status),
    itemIndex,
  });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
