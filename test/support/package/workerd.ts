/** Runs a worker in workerd, the runtime of Cloudflare's edge. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';

/** A worker on a free port, which may call services on this machine. */
const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "worker", worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      compatibilityDate = "2026-01-01",
      globalOutbound = "network",
    )),
    (name = "network", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);
`;

/**
 * @param program the path of workerd
 * @param script a module that exports the worker
 * @returns the URL of the worker, which stops after the test
 */
export async function startWorkerd(t: TestContext, program: string, script: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-workerd-'));
  writeFileSync(join(directory, 'worker.js'), script);
  writeFileSync(join(directory, 'config.capnp'), CONFIG);
  const child = spawn(program, ['serve', join(directory, 'config.capnp'), '--control-fd=3'], {
    stdio: ['ignore', 'inherit', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(directory, { recursive: true, force: true });
  });
  let errors = '';
  child.stderr?.on('data', (text) => {
    errors += text;
  });
  for await (const line of createInterface({ input: child.stdio[3] as Readable })) {
    const { event, port } = JSON.parse(line);
    if (event === 'listen') return `http://127.0.0.1:${port}/`;
  }
  throw new Error(`workerd does not listen:\n${errors}`);
}
