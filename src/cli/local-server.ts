/**
 * Handles the calls of a client in this process, directly on the database. The calls run the same operations as on a
 * server, with all rights in the client's team, but without a port, an API key or rate limits.
 */
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Flowhook } from '../../client/src/flowhook-client.ts';
import type { Config } from '../config/config.ts';
import type { KeyedCall, Operation } from '../http/route.ts';
import { Reply, Request } from '../http/server/exchange.ts';
import { isServerError, renderProblem, toProblem } from '../http/server/problem.ts';
import type { Services } from '../http/services.ts';
import { SCOPES } from '../model/team.ts';
import { silentLogger } from '../observe/log.ts';
import type { Sealer } from '../std/seal.ts';
import type { Store } from '../store/store.ts';
import type { Caller } from '../teams/keys.ts';
import { urlOfServer } from './open.ts';

/**
 * The operations that commands call. Each operation is loaded at its first call, because loading all of them would add
 * 60 ms to every start of a command. `local-server.test.ts` compares this list with the routes of a server.
 */
export const OPERATIONS: readonly Line[] = [
  ...linesOf(() => import('../http/routes/workflows.ts'), {
    listWorkflows: 'GET /v1/workflows',
    readWorkflow: 'GET /v1/workflows/{workflowId}',
    pauseWorkflow: 'POST /v1/workflows/{workflowId}/pause',
    resumeWorkflow: 'POST /v1/workflows/{workflowId}/resume',
  }),
  ...linesOf(() => import('../http/routes/definitions.ts'), {
    readWorkflowDefinition: 'GET /v1/workflows/{workflowId}/definition',
  }),
  ...linesOf(() => import('../http/routes/quarantine.ts'), {
    listQuarantine: 'GET /v1/workflows/{workflowId}/quarantine',
    readQuarantined: 'GET /v1/workflows/{workflowId}/quarantine/{recordId}',
    acceptQuarantine: 'POST /v1/workflows/{workflowId}/quarantine/accept',
    dropQuarantine: 'POST /v1/workflows/{workflowId}/quarantine/drop',
  }),
  ...linesOf(() => import('../http/routes/source-states.ts'), {
    readWorkflowState: 'GET /v1/workflows/{workflowId}/state',
    putWorkflowState: 'PUT /v1/workflows/{workflowId}/state',
    deleteWorkflowState: 'DELETE /v1/workflows/{workflowId}/state',
  }),
  ...linesOf(() => import('../http/routes/jobs.ts'), {
    queueJob: 'POST /v1/workflows/{workflowId}/queue',
    listJobs: 'GET /v1/jobs',
    readJob: 'GET /v1/jobs/{jobId}',
    cancelJob: 'POST /v1/jobs/{jobId}/cancel',
    rerunJob: 'POST /v1/jobs/{jobId}/rerun',
    runJobNow: 'POST /v1/jobs/{jobId}/run-now',
  }),
  ...linesOf(() => import('../http/routes/push.ts'), {
    pushRecords: 'POST /v1/workflows/{workflowId}/push',
  }),
  ...linesOf(() => import('../http/routes/data.ts'), {
    readData: 'GET /v1/workflows/{workflowId}/data',
  }),
  ...linesOf(() => import('../http/routes/changes.ts'), {
    readWorkflowChanges: 'GET /v1/workflows/{workflowId}/changes',
    listWorkflowVersions: 'GET /v1/workflows/{workflowId}/versions',
    listRecordHistory: 'GET /v1/workflows/{workflowId}/records/{recordId}/history',
  }),
  ...linesOf(() => import('../http/routes/profiles.ts'), {
    readWorkflowProfile: 'GET /v1/workflows/{workflowId}/profile',
  }),
  ...linesOf(() => import('../http/routes/feeds.ts'), {
    listFeeds: 'GET /v1/workflows/{workflowId}/feeds',
    createFeed: 'POST /v1/workflows/{workflowId}/feeds',
    readFeed: 'GET /v1/workflows/{workflowId}/feeds/{feedId}',
    updateFeed: 'PATCH /v1/workflows/{workflowId}/feeds/{feedId}',
    rotateFeed: 'POST /v1/workflows/{workflowId}/feeds/{feedId}/rotate',
    revokeFeed: 'DELETE /v1/workflows/{workflowId}/feeds/{feedId}',
  }),
  ...linesOf(() => import('../http/routes/job-logs.ts'), {
    readJobLogs: 'GET /v1/jobs/{jobId}/logs',
  }),
  ...linesOf(() => import('../http/routes/events.ts'), {
    listEvents: 'GET /v1/events',
  }),
  ...linesOf(() => import('../http/routes/subscriptions.ts'), {
    listWebhooks: 'GET /v1/integrations/webhooks/list',
    subscribeWebhook: 'POST /v1/integrations/webhooks/subscribe',
    unsubscribeWebhookByPath: 'DELETE /v1/integrations/webhooks/unsubscribe/{webhookId}',
  }),
  ...linesOf(() => import('../http/routes/webhook-list.ts'), {
    listWebhookDetails: 'GET /v1/integrations/webhooks',
  }),
  ...linesOf(() => import('../http/routes/webhooks.ts'), {
    createWebhook: 'POST /v1/integrations/webhooks',
    readWebhook: 'GET /v1/integrations/webhooks/{webhookId=wh_*}',
    updateWebhook: 'PATCH /v1/integrations/webhooks/{webhookId=wh_*}',
    testWebhook: 'POST /v1/integrations/webhooks/{webhookId=wh_*}/test',
    pauseWebhook: 'POST /v1/integrations/webhooks/{webhookId=wh_*}/pause',
    resumeWebhook: 'POST /v1/integrations/webhooks/{webhookId=wh_*}/resume',
  }),
  ...linesOf(() => import('../http/routes/mail.ts'), {
    verifyWebhook: 'POST /v1/integrations/webhooks/{webhookId=wh_*}/verify',
  }),
  ...linesOf(() => import('../http/routes/secrets.ts'), {
    readWebhookSecret: 'GET /v1/integrations/webhooks/{webhookId=wh_*}/secret',
    rotateWebhookSecret: 'POST /v1/integrations/webhooks/{webhookId=wh_*}/rotate',
  }),
  ...linesOf(() => import('../http/routes/all-deliveries.ts'), {
    listDeliveries: 'GET /v1/deliveries',
    retryDeliveries: 'POST /v1/deliveries/retry',
    readRetry: 'GET /v1/retries/{retryId}',
  }),
  ...linesOf(() => import('../http/routes/deliveries.ts'), {
    listWebhookDeliveries: 'GET /v1/integrations/webhooks/{webhookId=wh_*}/deliveries',
    readDelivery: 'GET /v1/deliveries/{deliveryId}',
    replayDelivery: 'POST /v1/deliveries/{deliveryId}/replay',
    replayDeliveries: 'POST /v1/integrations/webhooks/{webhookId=wh_*}/replay',
    readReplay: 'GET /v1/integrations/webhooks/{webhookId=wh_*}/replays/{replayId}',
  }),
  ...linesOf(() => import('../http/routes/decisions.ts'), {
    listWebhookDecisions: 'GET /v1/integrations/webhooks/{webhookId=wh_*}/decisions',
  }),
  ...linesOf(() => import('../http/routes/try-rule.ts'), {
    tryWebhook: 'POST /v1/webhooks/try',
  }),
  ...linesOf(() => import('../http/routes/search.ts'), {
    search: 'GET /v1/search',
  }),
  ...linesOf(() => import('../http/routes/keys.ts'), {
    listKeys: 'GET /v1/keys',
  }),
  ...linesOf(() => import('../http/routes/team.ts'), {
    listAudit: 'GET /v1/audit',
  }),
  ...linesOf(() => import('../http/routes/persons.ts'), {
    exportPersonalData: 'POST /v1/export',
  }),
];

interface Line {
  method: string;
  path: string;
  load: () => Promise<Operation<KeyedCall>>;
}

/** @param lines the method and path of each operation, by the name under which the file exports the operation */
function linesOf<File>(load: () => Promise<File>, lines: { [Name in keyof File]?: string }): Line[] {
  return Object.entries<string | undefined>(lines).map(([name, line = '']) => {
    const [method = '', path = ''] = line.split(' ');
    const operation = async () => (await load())[name as keyof File] as Operation<KeyedCall>;
    return { method, path, load: operation };
  });
}

/**
 * Returns a client whose calls are handled by this process. @param of.store also records the author of changes in the
 * audit log
 */
export function localClient(of: { store: Store; config: Config; teamId: string }): Flowhook {
  const caller: Caller = {
    teamId: of.teamId,
    keyId: '',
    scopes: [...SCOPES],
    key: null,
    isLocal: true,
    isStillGood: async () => true,
  };
  let sealing: ReturnType<typeof sealingServices> | undefined;
  const servicesFor = async (path: string): Promise<Partial<Services> & { close?(): Promise<void> }> => {
    const { store, config } = of;
    const services: Partial<Services> = {
      store,
      log: silentLogger,
      quotas: config.quotas,
      bodies: wholeReads(store),
      workflowFile: async (file) =>
        (await import('../definitions/files.ts')).findWorkflowFile(config.workflowsDirectory, file),
    };
    if (/\/(events|changes|try)$/.test(path)) services.examiner = await localExaminer(store, config);
    // Only the operations on the following paths may need the encryption key.
    if (/\/(push|quarantine\/accept)$/.test(path))
      return { ...services, ...(await pushServices(store, config)) };
    const seals = /^\/v1\/(integrations|deliveries|export)\b|^\/v1\/workflows\/[^/]+\/feeds\b/;
    if (!seals.test(path)) return services;
    sealing ??= sealingServices(store, config);
    return { ...services, ...(await sealing) };
  };
  return new Flowhook({
    url: 'http://this.process',
    retries: 0,
    timeoutMs: 0,
    fetch: async (input, init = {}) => {
      const { pathname, search } = new URL(String(input));
      const { operation, params } = await operationFor(init.method ?? 'GET', pathname);
      const request = requestOf(init);
      // A connection that never closes.
      const connection = Object.assign(new EventEmitter(), { destroyed: false });
      const reply = new Reply(request, connection as unknown as ServerResponse);
      const services = await servicesFor(pathname);
      const call = {
        services,
        caller,
        operation,
        params,
        query: search.slice(1),
        trace: null,
        request,
        reply,
      };
      try {
        // `call` contains only the parts of a request, a reply and services that operations use without a network.
        return responseOf(await operation.handle(call as unknown as KeyedCall), reply);
      } catch (error) {
        const problem = toProblem(error);
        // The caller can open the database, and may therefore see the cause of the error.
        if (isServerError(problem)) throw error;
        const { status, headers, body } = renderProblem(problem, { isFrozen: operation.frozen === true });
        return localResponse({ status, headers, body });
      } finally {
        await services.close?.();
      }
    },
  });
}

async function operationFor(method: string, pathname: string) {
  for (const { path, load, ...line } of OPERATIONS) {
    if (line.method !== method) continue;
    const pattern = path.replace(/\{(\w+)(?:=(\w*)\*)?\}/g, '(?<$1>$2[^/]+)');
    const found = new RegExp(`^${pattern}$`).exec(pathname);
    if (found === null) continue;
    const named = Object.entries(found.groups ?? {}).map(([name, text]) => [name, decodeURIComponent(text)]);
    return { operation: await load(), params: Object.fromEntries(named) as Record<string, string> };
  }
  throw new Error(
    `local-server.ts has no operation for ${method} ${pathname}. Add the operation to its list`,
  );
}

async function sealingServices(store: Store, config: Config) {
  const { openSealer } = await import('../teams/encryption-key.ts');
  const { createResolver } = await import('../net/resolver.ts');
  const { FeedAddresses } = await import('../http/feeds/addresses.ts');
  const { createMailing } = await import('../webhooks/mail/mailing.ts');
  const sealer = await openSealer(config, store).catch(withoutKey);
  const resolver = createResolver();
  const publicUrl = () => urlOfServer(config);
  const mailing = createMailing(config, { sealer, resolver, publicUrl, now: () => store.now() });
  return {
    feedAddresses: new FeedAddresses({ sealer, publicUrl, log: silentLogger }),
    webhooks: {
      store,
      sealer,
      policy: config.allowNetworks,
      resolver,
      mailing,
      log: silentLogger,
      limit: config.maxWebhooksPerWorkflow,
    },
    erasure: { store, sealer, directories: [], forget: async () => {} },
    // An open connection would keep the command from ending.
    close: async () => mailing.close(),
  };
}

/**
 * Replaces the sealer if the encryption key is missing. Deliveries can then be listed and replayed, but sealed secrets
 * cannot be used.
 */
function withoutKey(why: Error): Sealer {
  const refuse = () => {
    throw why;
  };
  return { seal: refuse, open: refuse, macKey: refuse, fingerprint: '' };
}

/** Creates the services for a push, which parses its records in a separate thread. `close` ends the thread. */
async function pushServices(store: Store, config: Config) {
  const { openSealer } = await import('../teams/encryption-key.ts');
  const { Ingester } = await import('../records/ingester.ts');
  const { PushJobs } = await import('../jobs/push-job.ts');
  const { loadSuppression } = await import('../records/suppress.ts');
  const sealer = await openSealer(config, store);
  const ingester = new Ingester({
    databaseUrl: config.databaseUrl,
    log: silentLogger,
    suppression: (at) => loadSuppression({ store, sealer }, at),
  });
  const pushes = new PushJobs({
    store,
    ingester,
    log: silentLogger,
    observer: {},
    // The job gets a separate node id, so that a starting server does not recover the job as one of its own.
    nodeId: `cli-${randomBytes(6).toString('hex')}`,
    random: Math.random,
  });
  // Calls in this process have no time limit.
  const long = { signal: new AbortController().signal, confirm: async () => {}, end: () => {} };
  return {
    pushes,
    isReady: () => true,
    longCalls: { follow: () => long } as Partial<Services['longCalls']> as Services['longCalls'],
    close: () => ingester.close(),
  };
}

/** Evaluates filters in this process, which has nothing else to do. */
async function localExaminer(store: Store, config: Config): Promise<Services['examiner']> {
  const { examinerHere } = await import('../webhooks/rules/examiner.ts');
  return examinerHere({ store, reader: store, publicUrl: () => urlOfServer(config) });
}

/** Reads records from the tables, because the cache files of a running server must not be touched. */
function wholeReads(store: Store): Services['bodies'] {
  const reads: Pick<Services['bodies'], 'readSmall' | 'open'> = {
    async readSmall(body) {
      const { bodyOf } = await import('../records/read.ts');
      return Buffer.concat(await Array.fromAsync(bodyOf(store, body)));
    },
    open: async () => undefined,
  };
  return reads as Services['bodies'];
}

function requestOf({ method = 'GET', headers, body, signal }: RequestInit): Request {
  const bytes =
    typeof body === 'object' && body !== null
      ? Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0])
      : Readable.from(typeof body === 'string' ? [Buffer.from(body)] : []);
  // The reader of the stream receives the error. Without this listener, an error before the first read would end the
  // process.
  bytes.on('error', () => {});
  // To the operation, an abort looks like a lost connection, so the operation cleans up.
  signal?.addEventListener('abort', () => bytes.destroy(signal.reason), { once: true });
  const raw = Object.assign(bytes, { method, headers: headers as Record<string, string>, socket: {} });
  return new Request(raw as unknown as IncomingMessage, false);
}

function responseOf(returned: unknown, reply: Reply): Response {
  const sent = returned === reply ? reply.body : returned;
  const isRaw = typeof sent === 'string' || sent instanceof Uint8Array || sent instanceof Readable;
  const body = isRaw ? sent : sent === undefined ? '' : JSON.stringify(sent);
  return localResponse({ status: reply.statusCode, headers: reply.getHeaders(), body });
}

/**
 * Returns only the parts of a response that the client reads, because `Response` would load Node's HTTP client, which
 * takes 45 ms.
 */
function localResponse(of: {
  status: number;
  headers: Readonly<Record<string, unknown>>;
  body: string | Uint8Array | Readable;
}): Response {
  const { status, body } = of;
  const bytes = () => (body instanceof Readable ? body : Readable.from([Buffer.from(body)]));
  const response = {
    status,
    ok: status >= 200 && status < 300,
    headers: { get: (name: string) => (of.headers[name] === undefined ? null : String(of.headers[name])) },
    get body() {
      return Readable.toWeb(bytes());
    },
    async text() {
      return Buffer.concat(await Array.fromAsync(bytes())).toString();
    },
  };
  return response as unknown as Response;
}
