/** How every request reaches the service, and what becomes of its refusals. */
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
  /** From `/v1` on, without its query. */
  path: string;
  method?: IHttpRequestMethods;
  query?: IDataObject;
  headers?: IDataObject;
  /** Sent as JSON. */
  body?: unknown;
  timeoutMs?: number;
  /** Statuses that are answers here, beside those below 300. */
  accept?: readonly number[];
  /** Of the item that it is about, for the error. */
  itemIndex?: number;
}

export interface Answer<Body> {
  status: number;
  /** Names in small letters. */
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
        // As a text: of values n8n leaves out those that are empty.
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        json: true,
        returnFullResponse: true,
        ignoreHttpStatusErrors: true,
        // The key goes to the address that was entered, and nowhere else.
        disableFollowRedirect: true,
        timeout: timeoutMs,
      },
    );
  } catch (error) {
    throw new NodeApiError(caller.getNode(), error as JsonObject, {
      message: `Flowhook does not answer at ${base}`,
      description: `${reasonOf(error)}. Look whether n8n can reach this address, and whether it is the base URL of Flowhook`,
      itemIndex,
    });
  }
  const answer = { status: response.statusCode, headers: response.headers, body: response.body };
  if (answer.status < 300 || accept.includes(answer.status)) return answer;
  throw refusal(caller, base, answer, itemIndex);
}

/** The address as it was entered, without what people copy along with it. */
async function baseUrl(caller: Caller, itemIndex = 0): Promise<string> {
  const { baseUrl: entered } = await caller.getCredentials<{ baseUrl: string }>(CREDENTIAL, itemIndex);
  return String(entered).trim().replace(/\/+$/, '').replace(/\/v1$/, '');
}

function refusal(caller: Caller, base: string, answer: Answer<unknown>, itemIndex?: number): NodeApiError {
  const { status, headers, body } = answer;
  const said = (body as { error?: unknown } | null)?.error;
  const sentence = typeof said === 'string' ? said : undefined;
  const code = headers['x-error-code'];
  let message = sentence ?? `${base} answers ${status}, and not in the way of Flowhook`;
  let description = sentence === undefined ? 'Look whether that is its base URL' : undefined;
  if (status < 400) {
    message = `${base} redirects to ${headers.location ?? 'another address'}`;
    description = 'Enter the address that answers itself as the base URL';
  } else if (code === 'scope_missing') {
    description = 'Use a key with the scopes read, queue and webhooks';
  } else if (status === 401) {
    description =
      'The key is not the whole key, or was revoked, or has expired: enter another one in the credential';
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
