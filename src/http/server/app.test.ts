/** HTTP beyond the contract: streams that fail, clients that disconnect, log lines, request ids. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, IncomingMessage, request, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { Problem } from '../../model/error.ts';
import { NO_QUOTAS } from '../../model/quota.ts';
import { type Logger, silentLogger } from '../../observe/log.ts';
import { wideLines } from '../../observe/wide-lines.ts';
import { BodyCache } from '../../records/body-cache.ts';
import { BodyWriter } from '../../records/body-writer.ts';
import { collectGarbage } from '../../std/idle-gc.ts';
import { createSealer } from '../../std/seal.ts';
import { definition, makeRunning, makeWorkflow, stageRecords } from '../../store/conformance/setup.ts';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { Authenticator, mintKey } from '../../teams/keys.ts';
import { ConnectionLimits } from '../limits/connections.ts';
import { InFlight, NEW_CALLERS, UNKNOWN_TEAM } from '../limits/requests.ts';
import { routes } from '../routes.ts';
import type { Services } from '../services.ts';
import { createApp } from './app.ts';
import { Reply, Request } from './exchange.ts';

const RECORDS = 400;
const BIG = 'x'.repeat(100_000);

interface Line {
  message: string;
  fields: Record<string, unknown>;
}

const directory = await mkdtemp(join(tmpdir(), 'flowhook-http-'));
const openBig = () =>
  openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
/** One store for all tests, with the workflow `big`, which has about 40 MB of records. */
const store = await openBig();
const { id: teamId } = await store.teams.ensure({ slug: 'default' });
const { key } = await mintKey(store, { teamId, name: '', scopes: ['admin'], expiresAt: null });
await publishBig(store);
const stops: (() => Promise<void>)[] = [];
after(async () => {
  for (const stop of stops) await stop();
  await store.close();
  await rm(directory, { recursive: true });
});

/** Starts the application on the store, or on a changed store. */
async function startApp(change: (store: Store) => Store = (store) => store) {
  const lines: Line[] = [];
  const listeners = new Set<() => void>();
  const write = (fields: object, message: string) => {
    lines.push({ message, fields: fields as Line['fields'] });
    for (const listener of listeners) listener();
  };
  const log: Logger = { debug: write, info: write, warn: write, error: write, child: () => log };
  const authenticator = new Authenticator(store);
  const inFlight = new InFlight({ waitMs: () => 0, log });
  const parts = { log, authenticator, inFlight, trustProxy: false } as const;
  const writer = new BodyWriter({ databaseUrl: '', log });
  const used: Partial<Services> = {
    ...parts,
    store: change(store),
    bodies: new BodyCache({ store, writer, directory, maxBytes: 0, log }),
    quotas: NO_QUOTAS,
    webhooks: { store, sealer: createSealer(randomBytes(32)) } as Services['webhooks'],
    isReady: () => true,
    isStopping: () => false,
    node: () => ({ role: 'all', openCircuits: 0 }) as ReturnType<Services['node']>,
  };
  const app = createApp({
    ...parts,
    routes,
    services: used as Services,
    observer: wideLines(log),
    connections: new ConnectionLimits({ most: 100, perAddress: 100, trustProxy: false, log }),
    timeouts: { headersMs: 60_000, requestMs: 60_000, keepAliveMs: 60_000 },
    servesApi: true,
    tracing: undefined,
    rateLimits: undefined,
    certificate: undefined,
    sessions: undefined,
    corsOrigins: [],
    lasting: [],
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  stops.push(async () => {
    app.server.closeAllConnections();
    await app.close();
    authenticator.close();
  });

  return {
    lines,
    inFlight,
    /** Adds requests in flight until the team is refused. Returns a function that ends them. */
    flood(team: string): () => void {
      const responses: ServerResponse[] = [];
      while (inFlight.admits('brief', team)) {
        const response = new ServerResponse(new IncomingMessage(new Socket()));
        inFlight.add(response, 'brief', team);
        responses.push(response);
      }
      return () => {
        for (const response of responses) inFlight.remove(response);
      };
    },
    /** Resolves with the first log line with this message. */
    line: (message: string) =>
      new Promise<Line>((resolve) => {
        const look = () => {
          const found = lines.find((line) => line.message === message);
          if (found !== undefined) resolve(found);
        };
        listeners.add(look);
        look();
      }),
    ask: (
      path: string,
      options: { method?: string; headers?: Record<string, string>; agent?: Agent } = {},
    ) => {
      const { port } = app.server.address() as AddressInfo;
      const sent = request({
        port,
        path,
        method: options.method,
        agent: options.agent,
        headers: { 'x-api-key': key, ...options.headers },
      });
      sent.end();
      return sent;
    },
  };
}

async function publishBig(store: Store): Promise<void> {
  const { limits } = definition();
  const changes = { mode: 'append', limits: { ...limits, records: RECORDS } } as const;
  const held = await makeRunning(store, await makeWorkflow(store, { id: 'big', ...changes }));
  for (let at = 0; at < RECORDS; at += 10) {
    const records = Array.from({ length: 10 }, (_, place) => {
      const id = String(at + place);
      return { id, body: JSON.stringify({ id, name: BIG }) };
    });
    await stageRecords(store, held, 'append', records);
  }
  await store.records.publish({ held, state: undefined, fields: ['id', 'name'] });
}

/** Counts the pages of records that are read. */
function counting(pages: { read: number }): (store: Store) => Store {
  return (store) => ({
    ...store,
    records: {
      ...store.records,
      page(input) {
        pages.read += 1;
        return store.records.page(input);
      },
    },
  });
}

test('sends every record to a client that reads slowly', async () => {
  const { ask } = await startApp();
  const chunks: Buffer[] = [];
  const response = await responseTo(ask('/v1/workflows/big/data'));
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const records = JSON.parse(Buffer.concat(chunks).toString()) as { id: string }[];
  assert.deepEqual(
    records.map((one) => one.id),
    Array.from({ length: RECORDS }, (_, at) => String(at)),
  );
});

test('destroys the socket without closing the JSON array when the database fails midway', async () => {
  const failing = await openBig();
  const { ask, line } = await startApp(() => failing);
  const response = await responseTo(ask('/v1/workflows/big/data'));
  const chunks: Buffer[] = [];
  await assert.rejects(async () => {
    for await (const chunk of response) {
      if (chunks.length === 0) await failing.close();
      chunks.push(chunk as Buffer);
    }
  }, /aborted/);
  const text = Buffer.concat(chunks).toString();
  assert.equal(response.complete, false);
  assert.throws(() => JSON.parse(text));
  assert.notEqual(text.at(-1), ']');
  await line('data.interrupted');
  assert.equal((await line('request.completed')).fields.aborted, true);
});

test('stops reading when the client disconnects', async () => {
  const pages = { read: 0 };
  const { ask, line } = await startApp(counting(pages));
  const sent = ask('/v1/workflows/big/data');
  const response = await responseTo(sent);
  await once(response, 'readable');
  sent.destroy();
  const { fields } = await line('request.completed');
  assert.equal(fields.aborted, true);
  const { read } = pages;
  for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(pages.read <= read + 1, 'only the page that was being read is still read');
  assert.ok(read < 5, `${read} pages were read for a client that had disconnected`);
});

test('destroys a stream whose client disconnected before the first byte', async () => {
  const raw = new ServerResponse(new IncomingMessage(new Socket()));
  raw.destroy();
  const body = Readable.from(['never read']);
  new Reply(new Request(raw.req, false), raw).send(body).write(body, (error) => assert.fail(String(error)));
  assert.ok(body.destroyed);
});

test('an idle connection keeps no response in memory', async (t) => {
  const { ask } = await startApp();
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const held = async () => {
    await collectGarbage();
    return process.memoryUsage().arrayBuffers;
  };
  await read(ask('/v1/workflows/big/data?limit=10', { agent }));
  const before = await held();
  // Concurrent, so that each has its own connection.
  const sent = Array.from({ length: 20 }, () => ask('/v1/workflows/big/data?limit=10', { agent }));
  for (const { text } of await Promise.all(sent.map(read))) assert.ok(text.length > 10 * BIG.length);
  const grown = (await held()) - before;
  assert.ok(grown < 5 * 10 * BIG.length, `${grown} bytes are held`);
});

test('reads no rows for HEAD', async () => {
  const pages = { read: 0 };
  const { ask } = await startApp(counting(pages));
  const response = await responseTo(ask('/v1/workflows/big/data', { method: 'HEAD' }));
  assert.equal(response.statusCode, 200);
  assert.equal(response.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(response.headers['content-length'], undefined);
  assert.equal(pages.read, 0);
});

test('ends a search without an error when its client disconnects', async () => {
  const started = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  let searches = 0;
  const { ask, line, lines } = await startApp((store) => ({
    ...store,
    records: {
      ...store.records,
      search: async (input) => {
        searches += 1;
        started.resolve();
        await gate.promise;
        return store.records.search({ ...input, scan: 1 });
      },
    },
  }));
  const sent = ask('/v1/workflows/big/data?q=nowhere');
  sent.on('error', () => {});
  await started.promise;
  sent.destroy();
  await line('request.completed');
  gate.resolve();
  for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(searches, 1);
  assert.ok(!lines.some(({ message }) => message === 'request.failed'));
});

test('an error before the first byte has no headers of the response that it replaces', async () => {
  const { ask } = await startApp((store) => ({
    ...store,
    records: { ...store.records, page: () => Promise.reject(new Problem('database_unavailable')) },
  }));
  for (const query of ['', '&limit=3']) {
    const headers = { 'accept-encoding': 'gzip' };
    const answer = await read(ask(`/v1/workflows/big/data?format=csv${query}`, { headers }));
    assert.equal(answer.status, 503);
    assert.deepEqual(Object.keys(JSON.parse(answer.text) as object), ['error']);
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
    assert.ok(answer.headers['x-request-id']);
    for (const name of ['content-encoding', 'content-disposition', 'etag', 'x-total-count'])
      assert.equal(answer.headers[name], undefined, `${name} ${query}`);
  }
});

test('asks the client to retry when a version is pruned before its first byte is sent', async () => {
  const { ask } = await startApp((store) => ({
    ...store,
    records: {
      ...store.records,
      page: async (input) => {
        return { ...(await store.records.page(input)), count: 0 };
      },
    },
  }));
  const answer = await read(ask('/v1/workflows/big/data'));
  assert.equal(answer.status, 503);
  assert.equal(answer.headers['retry-after'], '1');
  assert.match(answer.text, /Read them again/);
});

test('returns a sentence for unexpected errors, and logs the cause', async () => {
  const { ask, line } = await startApp((store) => ({
    ...store,
    webhooks: {
      ...store.webhooks,
      list: () => Promise.reject(new Error('the real cause')),
    },
  }));
  const answer = await read(
    ask('/v1/integrations/webhooks/list', { headers: { 'x-request-id': 'mine-1.2_3' } }),
  );
  assert.equal(answer.status, 500);
  assert.equal(answer.headers['x-error-code'], 'internal');
  assert.deepEqual(Object.keys(JSON.parse(answer.text) as object), ['error']);
  assert.doesNotMatch(answer.text, /real cause/);
  const { fields } = await line('request.failed');
  assert.equal((fields.err as Error).message, 'the real cause');
  assert.equal(fields.requestId, 'mine-1.2_3');
});

test('logs one line per request, without the key and the actual path', async () => {
  const { ask, line, lines } = await startApp();
  await read(ask('/livez'));
  await read(ask('/readyz'));
  const answer = await read(ask('/v1/jobs/job_secret?', { headers: { 'x-request-id': 'a b' } }));
  const { fields } = await line('request.completed');
  assert.equal(typeof fields.ms, 'number');
  assert.ok(Number(fields.sentBytes) > 100);
  assert.match(String(fields.keyId), /^key_/);
  assert.deepEqual(
    { ...fields, ms: 0, sentBytes: 0, keyId: '' },
    {
      method: 'GET',
      route: '/v1/jobs/{jobId}',
      status: 404,
      ms: 0,
      sentBytes: 0,
      teamId,
      keyId: '',
      code: 'job_not_found',
      requestId: answer.headers['x-request-id'],
    },
  );
  assert.notEqual(fields.requestId, 'a b');
  assert.equal(lines.length, 1);
  assert.ok(!JSON.stringify(lines).includes(key) && !JSON.stringify(lines).includes('job_secret'));
});

test('a flood without keys refuses no keys, and a flood of new keys refuses no known key', async () => {
  const { ask, flood } = await startApp();
  const status = async (headers = {}) => (await read(ask('/v1/me', { headers }))).status;
  const endKeyless = flood(UNKNOWN_TEAM);
  assert.equal(await status({ 'x-api-key': '' }), 503);
  assert.equal(await status(), 200);
  const endNew = flood(NEW_CALLERS);
  const { key: fresh } = await mintKey(store, { teamId, name: '', scopes: ['read'], expiresAt: null });
  assert.equal(await status({ 'x-api-key': fresh }), 503);
  assert.equal(await status(), 200, 'a new key must not make this key unknown');
  endNew();
  assert.equal(await status({ 'x-api-key': fresh }), 200);
  endKeyless();
});

test('a request that is refused when its team is known counts as refused, and is not logged', async () => {
  const { ask, flood, inFlight, lines } = await startApp();
  const end = flood(teamId);
  const before = inFlight.state.shed;
  const refused = await read(ask('/v1/me'));
  assert.deepEqual([refused.status, refused.headers['x-error-code']], [503, 'overloaded']);
  assert.match(String(refused.headers['retry-after']), /^[1-3]$/);
  assert.equal(inFlight.state.shed, before + 1);
  end();
  assert.equal((await read(ask('/v1/me'))).status, 200);
  assert.deepEqual(
    lines.map(({ fields }) => fields.status),
    [200],
  );
});

test('closes the connection of a request that is refused during the shutdown', async () => {
  const { ask, flood, inFlight } = await startApp();
  const agent = new Agent({ keepAlive: true });
  const end = flood(UNKNOWN_TEAM);
  const connectionOf = async () =>
    (await read(ask('/v1/me', { agent, headers: { 'x-api-key': '' } }))).headers.connection;
  assert.equal(await connectionOf(), 'keep-alive');
  inFlight.drain();
  assert.equal(await connectionOf(), 'close');
  end();
});

async function read(sent: ReturnType<typeof request>) {
  const response = await responseTo(sent);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() };
}

async function responseTo(sent: ReturnType<typeof request>): Promise<IncomingMessage> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}
