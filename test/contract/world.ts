/** The test environment of the matrix: the real service with two teams, valid and invalid keys, and blocked workflows. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { startContractService } from '../support/api/contract-service.ts';
import { assertAnswer, type Got, parsed, report, type Sent, send, sendBytes } from '../support/net/wire.ts';

/** By the name of the row, then of the case. */
export type Rows = Record<string, Record<string, () => Promise<unknown>>>;
export type Headers = [name: string, value: string][];
export type World = Awaited<ReturnType<typeof openWorld>>;

export interface ListItem {
  id: string;
  createdAt: string;
  url: string;
  events: string[];
}

export const LIST = '/v1/integrations/webhooks/list';
export const SUBSCRIBE = '/v1/integrations/webhooks/subscribe';
export const UNSUBSCRIBE = '/v1/integrations/webhooks/unsubscribe';
export const data = (id: string) => `/v1/workflows/${id}/data`;
export const queue = (id: string) => `/v1/workflows/${id}/queue`;

export const NO_WORKFLOW = { error: 'No workflow found' };
export const NO_WEBHOOK = { error: 'No webhook found' };
export const QUEUED = { message: 'Job queued' };
export const IN_THE_WAY = { error: 'A job is already queued for this workflow' };

/** A valid subscription to an event that never occurs. */
const VALID = { workflowId: 'quiet', webhookUrl: 'http://127.0.0.1:9/', events: ['x'] };
export const VALID_BODY = JSON.stringify(VALID);

/** Requests that succeed with a valid key, or fail only because a resource does not exist. */
export const OPERATIONS: Readonly<Record<string, Sent>> = {
  'GET data': { method: 'GET', path: data('quiet') },
  'POST queue': { method: 'POST', path: queue('busy') },
  'GET list': { method: 'GET', path: LIST },
  'POST subscribe': withBody('POST', SUBSCRIBE, VALID_BODY),
  'DELETE unsubscribe': { method: 'DELETE', path: `${UNSUBSCRIBE}?webhookId=wh_0` },
};

export function withBody(method: string, path: string, body: unknown, type = 'application/json'): Sent {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { method, path, body: text, headers: [['content-type', type]] };
}

/** One case for each value, named after it. */
export function each<T>(values: readonly T[], run: (value: T) => Promise<unknown>): Rows[string] {
  const cases: Rows[string] = {};
  for (const value of values) {
    const name = (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'missing')).slice(0, 100);
    assert.ok(!(name in cases), `two cases are called ${name}`);
    cases[name] = () => run(value);
  }
  return cases;
}

/** Fails with what was sent, what was expected and what came. */
export function is(got: Got, status: number, body?: unknown): Got {
  assert.equal(got.status, status, `expected: ${status}\n${report(got)}`);
  if (body === undefined) return got;
  assert.deepEqual(parsed(got), body, `expected: ${JSON.stringify(body)}\n${report(got)}`);
  return got;
}

/** A 400 whose sentence names the field. */
export function names(got: Got, field: string): Got {
  is(got, 400);
  assert.ok(got.text.includes(field), `expected: a sentence that names ${field}\n${report(got)}`);
  return got;
}

/** A 405 with exactly this Allow. */
export function allows(got: Got, allow: string): Got {
  is(got, 405);
  assert.equal(got.headers.allow, allow, `expected: allow: ${allow}\n${report(got)}`);
  return got;
}

export async function openWorld() {
  // A run reads its records from a named pipe: it is held open until the test writes to that pipe.
  const held = (id: string) => `source: { type: command, command: [cat, ${id}.pipe] }\n`;
  const ids = [
    'quiet',
    'second',
    'people',
    'first',
    'crowd',
    'twins',
    'freed',
    'again',
    'busy',
    'unread',
    'down',
  ];
  const service = await startContractService(
    {
      settings: { FLOWHOOK_MAX_RUNNING_JOBS: '64' },
      workflows: {
        ...Object.fromEntries(ids.map((id) => [`default/${id}.yaml`, held(id)])),
        'default/buffered.yaml': `overlap: buffer\n${held('quiet')}`,
        // An id that looks like a percent-encoded `100%`.
        'default/100%25.yaml': held('quiet'),
        'other/private.yaml': held('private'),
      },
    },
    process.env.FLOWHOOK_TEST_PROGRAM,
  );
  const { url, store, team } = service;
  const pipe = (id: string, slug = 'default') => join(service.directory, 'workflows', slug, `${id}.pipe`);
  execFileSync('mkfifo', [...ids.map((id) => pipe(id)), pipe('private', 'other')]);
  const agent = new Agent({ keepAlive: true });

  const other = await store.teams.bySlug({ slug: 'other' });
  assert.ok(other);
  const mint = (scopes: Scope[], teamId = team.id, expiresAt: number | null = null) =>
    mintKey(store, { teamId, name: 'test', scopes, expiresAt });
  const every: Scope[] = ['read', 'queue', 'webhooks'];
  const revoked = await mint(every);
  await store.keys.revoke({ id: revoked.record.id });
  const keys = {
    good: service.key,
    others: (await mint(every, other.id)).key,
    expired: (await mint(every, team.id, Date.now() - 1)).key,
    revoked: revoked.key,
    read: (await mint(['read'])).key,
    webhooks: (await mint(['webhooks'])).key,
  };

  /** Sends with the default team's key, unless another, or none, is given. */
  async function ask(sent: Sent, key: string | null = keys.good): Promise<Got> {
    const keyed: Headers = key === null ? [] : [['x-api-key', key]];
    const got = await send(url, { ...sent, headers: [...(sent.headers ?? []), ...keyed] }, agent);
    assertAnswer(got);
    return got;
  }

  async function askInBytes(text: string): Promise<Got> {
    const got = await sendBytes(url, text);
    assertAnswer(got);
    return got;
  }

  const subscribe = (fields: object, key?: string) =>
    ask(withBody('POST', SUBSCRIBE, { ...VALID, ...fields }), key);

  async function listed(query = '', key?: string): Promise<ListItem[]> {
    const got = is(await ask({ method: 'GET', path: LIST + query }, key), 200);
    return (parsed(got) as { webhooks: ListItem[] }).webhooks;
  }

  let made = 0;
  /** Returns a unique URL. */
  const newUrl = () => `http://127.0.0.1:9/${++made}`;

  /** Subscribes and returns the ID of the webhook. */
  async function newWebhook(workflowId = 'quiet', key?: string): Promise<string> {
    const got = is(await subscribe({ workflowId, webhookUrl: newUrl() }, key), 200);
    return got.headers['x-webhook-id'] as string;
  }

  /** Writes the records of the run in a queue response, and waits until its job has finished. */
  async function letFinish(id: string, queued: Got, records = '{"id":"1"}\n'): Promise<void> {
    await writeFile(pipe(id), records);
    const jobId = queued.headers['x-job-id'] as string;
    await new Promise<void>((resolve, reject) => {
      const look = async () => {
        const job = await store.jobs.get({ teamId: team.id, id: jobId });
        if (job?.state !== 'finished' && job?.state !== 'failed') return;
        unwatch();
        if (job.state === 'finished') resolve();
        else reject(new Error(`The run of ${id} failed: ${job.error}`));
      };
      const unwatch = store.watch(() => void look());
      void look();
    });
  }

  return {
    service,
    keys,
    ask,
    askInBytes,
    /** Sends bytes and returns everything that comes back, which may be several responses. */
    exchange: (text: string) => sendBytes(url, text),
    get: (path: string, headers: Headers = []) => ask({ method: 'GET', path, headers }),
    post: (path: string, headers: Headers = []) => ask({ method: 'POST', path, headers }),
    remove: (path: string) => ask({ method: 'DELETE', path }),
    subscribe,
    listed,
    newUrl,
    newWebhook,
    letFinish,
    async close() {
      agent.destroy();
      await service.stop();
    },
  };
}
