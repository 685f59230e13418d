/**
 * A fake n8n, as far as these nodes need it: `this` in each of their functions, webhooks over HTTP, and static data that
 * survives a restart. The real n8n loads the node classes with `require`, and provides its errors and change detection
 * (`ObservableObject`). Its HTTP helper is replaced with forty lines over `fetch`.
 */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import vm from 'node:vm';
import type {
  ICredentialType,
  IDataObject,
  IExecuteFunctions,
  IHookFunctions,
  IHttpRequestOptions,
  ILoadOptionsFunctions,
  INodeExecutionData,
  INodeType,
  IWebhookFunctions,
  IWebhookResponseData,
} from 'n8n-workflow';
import { until } from './service.mts';

const DIST = join(import.meta.dirname, '../../dist');
const require = createRequire(import.meta.url);
// Node cannot load the ES module build: its imports have no extensions.
const { ObservableObject } = require('n8n-workflow') as typeof import('n8n-workflow');

export interface Access {
  baseUrl: string;
  apiKey: string;
}

/** The classes as a new process of n8n loads them. */
function loadPackage() {
  for (const path of Object.keys(require.cache)) if (path.startsWith(DIST)) delete require.cache[path];
  const load = (path: string) => require(join(DIST, path));
  return {
    action: new (load('nodes/Flowhook/Flowhook.node.js').Flowhook)() as INodeType,
    trigger: new (load('nodes/FlowhookTrigger/FlowhookTrigger.node.js').FlowhookTrigger)() as INodeType,
    credential: new (load('credentials/FlowhookApi.credentials.js').FlowhookApi)() as ICredentialType,
  };
}

/** @param access returns the content of the credential, and is called for each request */
export async function startN8n(access: () => Access) {
  let nodes = loadPackage();
  const state = {
    /** What n8n stores about the workflow in its database. */
    staticData: '{}',
    parameters: {} as IDataObject,
    instanceId: 'instance-1',
    workflowId: 'workflow-1',
    isActive: false,
    /** The events that started the workflow. */
    started: [] as IDataObject[],
    /** The statuses of the responses to webhook requests. */
    answers: [] as number[],
    /** Whether requests are processed without a response. */
    isSilent: false,
    /** Response headers that a proxy drops. */
    dropped: [] as string[],
    warnings: [] as string[],
  };
  const server = createServer((request, response) => void receive(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const webhookUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook/own/webhook`;

  const base = () => ({
    getNode: () => ({ id: 'node-1', name: 'Node', type: 'n8n-nodes-flowhook.node', typeVersion: 1 }),
    getWorkflow: () => ({ id: state.workflowId, name: 'Workflow', active: state.isActive }),
    getInstanceId: () => state.instanceId,
    getCredentials: async () => access(),
    logger: { info() {}, warn: (message: string) => state.warnings.push(message) },
    helpers: { httpRequestWithAuthentication: request },
  });

  /** Static data of the node, saved afterwards if n8n would detect a change. */
  async function withStaticData<T>(run: (data: IDataObject) => Promise<T>): Promise<T> {
    const data = ObservableObject.create(JSON.parse(state.staticData), undefined, {
      ignoreEmptyOnFirstChild: true,
    }) as IDataObject;
    data.node ??= ObservableObject.create({}, data as never);
    const result = await run(data.node as IDataObject);
    // n8n 2.41.1 does not save it if the webhook starts an execution.
    const starts = (result as IWebhookResponseData | undefined)?.workflowData !== undefined;
    if (data.__dataChanged === true && !starts) state.staticData = JSON.stringify(data);
    return result;
  }

  function hooks(name: 'checkExists' | 'create' | 'delete'): Promise<boolean> {
    return withStaticData(async (data) => {
      const context = {
        ...base(),
        getMode: () => 'trigger',
        getNodeWebhookUrl: () => webhookUrl,
        getNodeParameter: (parameter: string, fallback: unknown) => state.parameters[parameter] ?? fallback,
        getWorkflowStaticData: () => data,
      } as unknown as IHookFunctions;
      const method = nodes.trigger.webhookMethods?.default?.[name];
      assert.ok(method);
      return method.call(context);
    });
  }

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    // The service may be killed during this.
    request.on('error', () => {});
    response.on('error', () => {});
    for await (const chunk of request) chunks.push(chunk);
    const end = (status: number, body: unknown) => {
      state.answers.push(status);
      if (!state.isSilent) response.writeHead(status).end(JSON.stringify(body));
    };
    if (!state.isActive) return end(404, { message: 'The requested webhook is not registered.' });
    const raw = Object.assign(request, { rawBody: Buffer.concat(chunks) });
    const result = await withStaticData(async (data) => {
      const context = {
        ...base(),
        getMode: () => 'webhook',
        getRequestObject: () => raw,
        getHeaderData: () => request.headers,
        getResponseObject: () => ({
          status: (status: number) => ({ json: (body: unknown) => end(status, body) }),
        }),
        getNodeParameter: (parameter: string, fallback: unknown) => state.parameters[parameter] ?? fallback,
        getWorkflowStaticData: () => data,
      } as unknown as IWebhookFunctions;
      return nodes.trigger.webhook?.call(context);
    });
    for (const item of result?.workflowData?.[0] ?? []) state.started.push(item.json);
    if (result?.noWebhookResponse !== true)
      end(200, result?.webhookResponse ?? { message: 'Workflow was started' });
  }

  /** Like n8n's helper: the credential adds its header, JSON is parsed, and error statuses do not throw. */
  async function request(_credential: string, asked: IHttpRequestOptions) {
    assert.equal(asked.ignoreHttpStatusErrors, true);
    const url = new URL(asked.url);
    for (const [name, value] of Object.entries(asked.qs ?? {})) url.searchParams.set(name, String(value));
    const headers = new Headers(asked.headers as Record<string, string>);
    for (const [name, value] of Object.entries(nodes.credential.authenticate as never)) {
      if (name !== 'properties') continue;
      for (const [header, text] of Object.entries((value as { headers: Record<string, string> }).headers)) {
        headers.set(header, evaluate(text, access()));
      }
    }
    const response = await fetch(url, {
      method: asked.method ?? 'GET',
      headers,
      redirect: asked.disableFollowRedirect ? 'manual' : 'follow',
      signal: AbortSignal.timeout(asked.timeout ?? 300_000),
      ...(asked.body === undefined ? {} : { body: String(asked.body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    const kept = [...response.headers].filter(([name]) => !state.dropped.includes(name));
    return {
      statusCode: response.status,
      headers: Object.fromEntries(kept),
      body: isJson ? JSON.parse(text) : text,
    };
  }

  const n8n = {
    state,
    webhookUrl,
    /** What n8n does at an activation, and for each active workflow when it starts. */
    async activate(parameters: IDataObject = state.parameters) {
      state.parameters = parameters;
      if (!(await hooks('checkExists'))) await hooks('create');
      state.isActive = true;
    },
    async deactivate() {
      state.isActive = false;
      return hooks('delete');
    },
    /** Starts a new process: only saved data survives. */
    async restart() {
      nodes = loadPackage();
      if (state.isActive) await n8n.activate();
    },
    startedWith: (count: number) =>
      until(
        `${count} starts`,
        () => state.started,
        (all) => all.length >= count,
      ),
    /** Runs the action node over items, with the same parameters for all items. */
    async execute(parameters: IDataObject, items: IDataObject[] = [{}], continueOnFail = false) {
      const context = {
        ...base(),
        getInputData: () => items.map((json): INodeExecutionData => ({ json })),
        getNodeParameter: (name: string, _item: number, fallback?: unknown) => parameters[name] ?? fallback,
        getExecutionCancelSignal: () => undefined,
        continueOnFail: () => continueOnFail,
      } as unknown as IExecuteFunctions;
      const { execute } = nodes.action;
      assert.ok(execute);
      const [out] = (await execute.call(context)) as INodeExecutionData[][];
      // biome-ignore lint/suspicious/noExplicitAny: objects of any shape
      return (out ?? []).map((item) => item as { json: any; pairedItem: unknown });
    },
    options(of: 'action' | 'trigger', method: string) {
      const load = nodes[of].methods?.loadOptions?.[method];
      assert.ok(load);
      return load.call(base() as unknown as ILoadOptionsFunctions);
    },
    /** The request with which n8n tests a credential. */
    async tryCredential() {
      const { test } = nodes.credential;
      const url = evaluate(String(test?.request.baseURL), access()) + test?.request.url;
      return (await request('flowhookApi', { url, ignoreHttpStatusErrors: true })).statusCode;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    get description() {
      return { action: nodes.action.description, trigger: nodes.trigger.description };
    },
  };
  return n8n;
}

function evaluate(text: string, $credentials: Access): string {
  const expression = /^=\{\{(.*)\}\}$/s.exec(text)?.[1];
  return expression === undefined ? text : vm.runInNewContext(expression, { $credentials });
}
