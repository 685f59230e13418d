/** A real service for the tests of a recipe, with workflows that publish and end as the test needs. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { startServerProcess } from '../../test/support/server-process.ts';
import { until } from '../../test/support/until.ts';

export const KEY = 'key-of-the-recipes-tests';

export interface Person {
  id: string;
  name: string;
  email?: string;
}

/** Three records, so that pages of two records have a second page. */
export const PEOPLE: Person[] = [
  { id: '1', name: 'Ada Lovelace', email: 'ada@example.com' },
  { id: '2', name: 'Grace Hopper', email: 'grace@example.com' },
  { id: '3', name: '=1+1', email: 'ids@example.com' },
];

export interface Service {
  url: string;
  /** A directory for files that a recipe writes. */
  directory: string;
  /** Sets the records that the workflow `people` publishes next. */
  publishNext(people: readonly Person[]): Promise<void>;
  /** Lets the jobs of the workflow `held` end. */
  open(): Promise<void>;
  /** @returns the parsed body; fails if the status is not 200 */
  // biome-ignore lint/suspicious/noExplicitAny: the tests check the content
  ask(method: string, path: string, body?: unknown): Promise<any>;
  /** The subscribed URLs. */
  webhooks(): Promise<string[]>;
  /** Queues a job of `people` and waits for its end. */
  run(): Promise<void>;
  stop(): Promise<void>;
}

/** `people` publishes a file, `held` ends when the test lets it, `broken` fails immediately, `pushed` receives pushes. */
export async function startService(): Promise<Service> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-recipes-'));
  const source = join(directory, 'people.ndjson');
  const gate = join(directory, 'gate');
  const held = `while [ ! -e '${gate}' ]; do sleep 0.1; done; echo '{"id":1}'`;
  const workflows: Record<string, object> = {
    people: { name: 'People', source: { type: 'command', command: ['cat', source] } },
    held: { source: { type: 'command', command: ['sh', '-c', held] } },
    broken: {
      source: { type: 'command', command: ['sh', '-c', 'echo "the disk is full" >&2; exit 3'] },
      retries: { max: 0 },
    },
    pushed: { source: { type: 'push' } },
  };
  await mkdir(join(directory, 'workflows', 'default'), { recursive: true });
  for (const [id, definition] of Object.entries(workflows)) {
    // JSON is valid YAML.
    await writeFile(join(directory, 'workflows', 'default', `${id}.yaml`), JSON.stringify(definition));
  }
  const server = await startServerProcess({
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
  });
  const service: Service = {
    url: server.url,
    directory,
    publishNext: (people) =>
      writeFile(source, people.map((person) => `${JSON.stringify(person)}\n`).join('')),
    open: () => writeFile(gate, ''),
    async ask(method, path, body) {
      const answer = await fetch(server.url + path, {
        method,
        headers: { 'x-api-key': KEY, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const answered = await answer.text();
      assert.equal(answer.status, 200, answered);
      return JSON.parse(answered);
    },
    webhooks: async () => {
      const { webhooks } = await service.ask('GET', '/v1/integrations/webhooks/list');
      return webhooks.map(({ url }: { url: string }) => url);
    },
    async run() {
      const queued = await fetch(`${server.url}/v1/workflows/people/queue`, {
        method: 'POST',
        headers: { 'x-api-key': KEY },
      });
      assert.equal(queued.status, 200, await queued.text());
      const job = await until('the job of people has ended', async () => {
        const found = await service.ask('GET', `/v1/jobs/${queued.headers.get('x-job-id')}`);
        return found.finishedAt !== null && found;
      });
      assert.equal(job.state, 'finished', job.error);
    },
    async stop() {
      await writeFile(gate, '');
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
  await service.publishNext(PEOPLE);
  return service;
}

export interface Ended {
  status: number | null;
  output: string;
  errors: string;
}

/** Runs a program with `FLOWHOOK_URL` and `FLOWHOOK_KEY` set. */
export async function program(
  [command = '', ...args]: string[],
  { url, directory }: Pick<Service, 'url' | 'directory'>,
  environment: Record<string, string> = {},
): Promise<Ended> {
  const child = spawn(command, args, {
    cwd: directory,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: directory,
      FLOWHOOK_URL: url,
      FLOWHOOK_KEY: KEY,
      FLOWHOOK_EVERY: '0.1',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve, reject) =>
    child.once('close', resolve).once('error', reject),
  );
  const [output, errors, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, output, errors };
}
