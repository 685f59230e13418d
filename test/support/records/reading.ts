/** A service with a few workflows whose records a test publishes, and functions to read them. */
import assert from 'node:assert/strict';
import { readdir, readlink, writeFile } from 'node:fs/promises';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { after } from 'node:test';
import { allSteps } from '../../../src/store/conformance/setup.ts';
import { startService, type TestService } from '../service.ts';
import { until } from '../until.ts';

export const WORKFLOWS = {
  'default/people.yaml': 'source: { type: command, command: [cat, people.ndjson] }\n',
  'default/few.yaml': 'source: { type: command, command: [cat, few.ndjson] }\n',
  'default/quiet.yaml': 'source: { type: command, command: [cat, quiet.ndjson] }\n',
};
export const PEOPLE = '/v1/workflows/people/data';
export const FEW = '/v1/workflows/few/data';

export type Row = Record<string, unknown>;
export interface Got {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export const manyPeople = (count: number, note = 'x'.repeat(100), prefix = ''): Row[] =>
  Array.from({ length: count }, (_, n) => ({ id: `${prefix}${n}`, name: `Person ${n}`, note }));
export const json = (rows: readonly Row[]) => JSON.stringify(rows);
export const rowsOf = ({ body }: Got) => JSON.parse(body.toString()) as Row[];

export async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Starts the service for a test file. The returned functions use this service by default. */
export async function startReading() {
  const agent = new Agent({ keepAlive: true });
  const service = await startService({ workflows: WORKFLOWS });
  after(async () => {
    agent.destroy();
    await service.stop();
  });

  /** Makes a workflow publish exactly these records. */
  async function publish(rows: readonly Row[], workflowId: string, at: TestService = service): Promise<void> {
    const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    await writeFile(join(at.directory, 'workflows/default', `${workflowId}.ndjson`), text);
    const queued = await at.call('POST', `/v1/workflows/${workflowId}/queue`);
    assert.equal(queued.status, 200);
    const id = queued.headers.get('x-job-id') ?? '';
    const job = await new Promise<{ state: string; error: string | null }>((resolve) => {
      const check = async () => {
        const found = await at.store.jobs.get({ teamId: at.team.id, id });
        if (found === undefined || !/^(finished|failed|canceled)$/.test(found.state)) return;
        stop();
        resolve(found);
      };
      const stop = at.store.watch(() => void check());
      void check();
    });
    assert.equal(job.state, 'finished', job.error ?? '');
  }

  async function prune(workflowId: string, at: TestService = service): Promise<void> {
    const place = { teamId: at.team.id, workflowId };
    // Negative, because the clock of PostgreSQL may have been set back since the records were published.
    const retention = { keepVersions: 1, keepMs: 0, graceMs: -60_000, limit: 500 };
    await allSteps(at.store.records.prune, { ...place, ...retention });
  }

  function open(
    path: string,
    headers: Record<string, string> = {},
    options: { method?: string; at?: TestService; stalls?: boolean } = {},
  ): Promise<IncomingMessage> {
    const { method = 'GET', at = service, stalls = false } = options;
    return new Promise((resolve, reject) => {
      const sent = request(at.url + path, {
        method,
        headers: { 'x-api-key': at.key, ...headers },
        // A new connection, because the receive buffer of a used one may have grown so that it can hold any body.
        agent: stalls ? false : agent,
      });
      sent.on('response', resolve).on('error', reject).end();
    });
  }

  async function get(...asked: Parameters<typeof open>): Promise<Got> {
    const response = await open(...asked);
    const body = await bodyOf(response);
    return { status: response.statusCode ?? 0, headers: response.headers, body };
  }

  /** Waits until the body is cached as a file, which happens soon after the first read. Returns its length. */
  function untilKept(path: string, headers = {}, at = service): Promise<number> {
    return until(`the body of ${path} is cached`, async () => {
      const head = await get(path, headers, { method: 'HEAD', at });
      return Number(head.headers['content-length'] ?? 0);
    });
  }

  const kept = (at: TestService = service) =>
    readdir(join(at.directory, 'data/representations')).catch(() => [] as string[]);

  /** Files in the cache's directory that this process has open. */
  async function openFiles(): Promise<string[]> {
    const links = await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(join('/proc/self/fd', fd)).catch(() => '')),
    );
    return links.filter((link) => link.includes('/representations/'));
  }

  return { service, publish, prune, open, get, untilKept, kept, openFiles };
}
