/** A real service in its own process and directory, with workflows whose jobs wait for a gate. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startServerProcess } from '../../../../test/support/server-process.ts';

export const KEY = 'key-of-the-n8n-tests';

export type Service = Awaited<ReturnType<typeof startService>>;

/** @param workflows definitions by `<team>/<file>`; `$GATE` is a path that commands may wait for */
export async function startService(workflows: Record<string, string>) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-n8n-'));
  const gate = join(directory, 'gate');
  for (const [path, text] of Object.entries(workflows)) {
    const file = join(directory, 'workflows', path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text.replaceAll('$GATE', gate));
  }
  const start = () =>
    startServerProcess({
      FLOWHOOK_DATA: join(directory, 'data'),
      FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
      FLOWHOOK_BOOTSTRAP_KEY: KEY,
    });
  let running = await start();
  const service = {
    get url() {
      return running.url;
    },
    async call(method: string, path: string, body?: unknown) {
      const response = await fetch(running.url + path, {
        method,
        headers: { 'x-api-key': KEY, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        // biome-ignore lint/suspicious/noExplicitAny: responses of any shape
        body: text === '' ? null : (JSON.parse(text) as any),
      };
    },
    webhooks: async (): Promise<{ id: string; url: string; events: string[] }[]> =>
      (await service.call('GET', '/v1/integrations/webhooks/list')).body.webhooks,
    openGate: () => writeFile(gate, ''),
    closeGate: () => rm(gate, { force: true }),
    /** Resolves when the team has no unfinished job. */
    idle: () =>
      until(
        'the jobs to end',
        () => service.call('GET', '/v1/jobs?state=queued,running,retrying'),
        (answer) => answer.body.jobs.length === 0,
      ),
    kill: () => running.kill(),
    async restart() {
      running = await start();
    },
    async stop() {
      await running.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return service;
}

/** Polls until the condition is true. */
export async function until<T>(what: string, look: () => Promise<T> | T, holds: (value: T) => boolean) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const value = await look();
    if (holds(value)) return value;
    if (Date.now() > deadline) assert.fail(`Waited 60 s for ${what}: ${JSON.stringify(value)}`);
    await pause(50);
  }
}
