/** A service with data of one person everywhere: in records, versions, logs, states, deliveries and cached bodies. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { startService, type TestService } from '../service.ts';
import { until } from '../until.ts';

const run = promisify(execFile);
const BIN = join(import.meta.dirname, '../../..', 'bin', 'flowhook.js');

export const EMAIL = 'Ada.Lovelace@Example.com';
export const ID = 'person-7f3a9c';
export const CRM_ID = 'crm-ada-0042';

export const ada = { id: ID, name: 'Ada Lovelace', email: EMAIL, note: 'countess' };
export const other = (n: number) => ({
  id: `other-${n}`,
  name: `Other ${n}`,
  email: `other.${n}@example.com`,
});

export interface World {
  service: TestService;
  /** The directory with the files that the sources read, outside of the data directory. */
  sources: string;
  /** Bodies that the receiver received. */
  received: string[];
  write(name: string, records: readonly object[]): Promise<void>;
  /** Queues a job and waits until it has ended. */
  job(workflowId: string, key?: string): Promise<{ state: string; error: string | null }>;
  /** Moves the service's clock forward. */
  advance(ms: number): void;
}

export async function startWorld(t: TestContext): Promise<World> {
  const sources = await mkdtemp(join(tmpdir(), 'flowhook-sources-'));
  const write = (name: string, records: readonly object[]) =>
    writeFile(join(sources, name), records.map((one) => `${JSON.stringify(one)}\n`).join(''));
  for (const name of ['people', 'crm', 'module', 'others']) await write(name, [other(1)]);
  const cat = (name: string) => `source: { type: command, command: [cat, "${join(sources, name)}"] }\n`;
  // The clock does not move by itself, so failed deliveries are retried only when a test moves it.
  let now = Date.now();
  const service = await startService({
    clock: () => now,
    random: () => 0,
    workflows: {
      'default/people.yaml': cat('people'),
      'default/crm.yaml': `mode: upsert\n${cat('crm')}`,
      'default/broken.yaml': `retries: { max: 0 }\nsource: { type: command, command: [sh, -c, 'cat "${join(sources, 'error')}" >&2; exit 7'] }\n`,
      'default/waits.yaml': `source: { type: command, command: [sh, -c, 'cd "${sources}"; touch started; until test -e gate; do sleep 0.05; done; cat late'] }\n`,
      'default/module.mts':
        `import { readFileSync } from 'node:fs';\n` +
        'export default async function* (ctx) {\n' +
        `  const records = readFileSync(${JSON.stringify(join(sources, 'module'))}, 'utf8').trim().split('\\n').map((line) => JSON.parse(line));\n` +
        `  ctx.state.set('runs', (ctx.state.get('runs') ?? 0) + 1);\n` +
        `  ctx.state.set('last', { name: records.at(-1).name, email: records.at(-1).email });\n` +
        `  ctx.state.set('log', 'ended with ' + records.at(-1).email + ' at the end');\n` +
        '  yield* records;\n}\n',
      'else/people.yaml': cat('others'),
    },
  });
  const received: string[] = [];
  // Returns the data that it receives. `/late` fails, so that its deliveries wait.
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      received.push(body);
      const data = JSON.parse(body).data as { differences?: { fields: unknown[] }[] };
      const echo = JSON.stringify(data.differences?.flatMap(({ fields }) => fields) ?? data);
      response.setHeader('x-echo', echo.slice(0, 500).replace(/[^ -~]/g, '?'));
      response.writeHead(request.url === '/late' ? 500 : 200).end(`got ${echo.slice(0, 1_800)}`);
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  for (const path of ['now', 'late']) {
    for (const workflowId of ['people', 'broken']) {
      const subscribed = await service.call('POST', '/v1/integrations/webhooks/subscribe', {
        workflowId,
        webhookUrl: `http://127.0.0.1:${port}/${path}`,
        events: path === 'now' ? ['workflow_data_change', 'workflow_failed'] : ['workflow_data_change'],
      });
      assert.equal(subscribed.status, 200);
    }
  }
  t.after(async () => {
    await service.stop();
    receiver.closeAllConnections();
    await new Promise((resolve) => receiver.close(resolve));
    await rm(sources, { recursive: true });
  });
  return {
    service,
    sources,
    received,
    write,
    advance: (ms) => {
      now += ms;
    },
    async job(workflowId, key) {
      const queued = await service.call(
        'POST',
        `/v1/workflows/${workflowId}/queue`,
        undefined,
        key === undefined ? {} : { 'x-api-key': key },
      );
      assert.equal(queued.status, 200, JSON.stringify(queued.body));
      return ended(service, queued.headers.get('x-job-id') as string, key);
    },
  };
}

type JobEnd = { state: string; error: string | null };

export async function ended(service: TestService, jobId: string, key?: string): Promise<JobEnd> {
  return until(`job ${jobId} has ended`, async () => {
    const { body } = await service.call(
      'GET',
      `/v1/jobs/${jobId}`,
      undefined,
      key === undefined ? {} : { 'x-api-key': key },
    );
    const job = body as JobEnd;
    return job.state === 'finished' || job.state === 'failed' ? job : undefined;
  });
}

/** Files in a directory that contain one of the texts, ignoring case. Uses `grep`. */
export async function filesWith(directory: string, texts: readonly string[]): Promise<string[]> {
  const args = texts.flatMap((text) => ['-e', text]);
  return run('grep', ['-raliF', ...args, directory]).then(
    ({ stdout }) => stdout.trim().split('\n'),
    () => [],
  );
}

export async function flowhook({ service }: World, args: string[]) {
  const env = {
    FLOWHOOK_DATA: join(service.directory, 'data'),
    PATH: process.env.PATH ?? '',
    ...service.database.settings,
  };
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [BIN, ...args], { env, cwd: service.directory }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** Waits until every delivery was attempted: a response that arrives after an erasure would be stored. */
export async function attempted(service: TestService): Promise<void> {
  const { store, team } = service;
  await until('every delivery was attempted', async () => {
    for (const webhook of await store.webhooks.list({ teamId: team.id, limit: 100 })) {
      const deliveries = await store.deliveries.list({ teamId: team.id, webhookId: webhook.id, limit: 100 });
      if (deliveries.some(({ attempt }) => attempt === 0)) return undefined;
    }
    return true;
  });
}

/** Writes data of the person everywhere. */
export async function plant(world: World): Promise<void> {
  const { service, write, job, sources } = world;
  // Large, because small bodies are not cached as files.
  const others = Array.from({ length: 300 }, (_, n) => ({ ...other(n), pad: 'x'.repeat(1_000) }));
  await write('people', [...others.slice(0, 100), ada, ...others.slice(100)]);
  await job('people');
  await write('people', [...others, { ...ada, name: 'Ada King' }]);
  await job('people');
  await write('people', others.slice(1));
  await job('people');
  await write('people', [...others, { ...ada, email: EMAIL.toUpperCase() }]);
  await job('people');
  await write('crm', [other(1), { id: CRM_ID, email: EMAIL.toLowerCase(), phone: '+44 20 0000' }]);
  await job('crm');
  await write('module', [other(1), ada]);
  await job('module');
  await writeFile(join(sources, 'error'), `cannot sync <${EMAIL}>: ${ID} is locked`);
  const failed = await job('broken');
  assert.match(failed.error ?? '', /cannot sync <Ada/);
  // A record of another team, which must not be affected.
  await write('others', [{ ...other(9), id: 'elsewhere-1' }]);
  // Twice, so that the body is cached, and also compressed.
  for (const encoding of ['identity', 'gzip', 'identity', 'gzip']) {
    await fetch(`${service.url}/v1/workflows/people/data`, {
      headers: { 'x-api-key': service.key, 'accept-encoding': encoding },
    }).then((response) => response.arrayBuffer());
  }
  await attempted(service);
}

export async function versionsOf(service: TestService, workflowId: string) {
  const { body } = await service.call('GET', `/v1/workflows/${workflowId}/versions`);
  const { versions } = body as {
    versions: { version?: number; number?: number; records: { total: number } }[];
  };
  return versions.map((one) => ({
    version: (one.version ?? one.number) as number,
    total: one.records.total,
  }));
}

export async function dataOf(
  service: TestService,
  workflowId: string,
  query = '',
): Promise<{ id: string }[]> {
  const { status, body } = await service.call('GET', `/v1/workflows/${workflowId}/data${query}`);
  assert.equal(status, 200);
  return body as { id: string }[];
}
