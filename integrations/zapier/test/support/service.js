/** A real service in its own process and directory, started like a user would. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

const ROOT = join(import.meta.dirname, '../../../..');
const NODE = join(ROOT, 'node_modules/.bin/node');
const KEY = 'key-of-the-zapier-tests';

/**
 * @param {Record<string, string>} workflows definitions by `<team>/<file>`; `$GATE` is a path that commands may wait for
 */
export async function startService(workflows) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-zapier-'));
  const gate = join(directory, 'gate');
  for (const [path, text] of Object.entries(workflows)) {
    const file = join(directory, 'workflows', path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text.replaceAll('$GATE', gate));
  }
  let running = await serve(directory);
  const service = {
    key: KEY,
    get url() {
      return running.url;
    },
    /** What Zapier stores about the connection. */
    authData: () => ({ baseUrl: running.url, apiKey: KEY }),
    /**
     * @param {string} method
     * @param {string} path
     * @param {unknown} [body]
     */
    async call(method, path, body) {
      const response = await fetch(running.url + path, {
        method,
        headers: { 'x-api-key': KEY, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        body: text === '' ? null : JSON.parse(text),
      };
    },
    webhooks: async () => (await service.call('GET', '/v1/integrations/webhooks/list')).body.webhooks,
    /** Lets commands continue that wait for the gate. */
    openGate: () => writeFile(gate, ''),
    closeGate: () => rm(gate, { force: true }),
    kill: () => running.end('SIGKILL'),
    async restart() {
      running = await serve(directory);
    },
    async stop() {
      await running.end('SIGTERM');
      await rm(directory, { recursive: true, force: true });
    },
  };
  return service;
}

/**
 * Polls until the condition is true. @template T
 *
 * @param {string} what
 * @param {() => Promise<T> | T} look
 * @param {(value: T) => boolean} holds
 */
export async function until(what, look, holds) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const value = await look();
    if (holds(value)) return value;
    if (Date.now() > deadline) assert.fail(`Waited 60 s for ${what}: ${JSON.stringify(value)}`);
    await pause(50);
  }
}

/** @param {string} directory */
async function serve(directory) {
  assert.ok(existsSync(NODE), `Run npm ci in ${ROOT} first: these tests start that service`);
  const child = spawn(NODE, [join(ROOT, 'bin/flowhook.js'), 'serve'], {
    cwd: directory,
    env: {
      PATH: process.env.PATH ?? '',
      FLOWHOOK_PORT: '0',
      FLOWHOOK_DASHBOARD: 'off',
      FLOWHOOK_DATA: join(directory, 'data'),
      FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
      FLOWHOOK_BOOTSTRAP_KEY: KEY,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  /** @type {string[]} */
  const lines = [];
  const url = await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        const found = /^flowhook listening on (\S+)$/.exec(line)?.[1];
        if (found !== undefined) resolve(found);
      });
    }
    child.once('exit', (code) => reject(new Error(`The service ended (${code}):\n${lines.join('\n')}`)));
  });
  return {
    url,
    /** @param {'SIGKILL' | 'SIGTERM'} signal */
    async end(signal) {
      child.kill(signal);
      await exited;
    },
  };
}
