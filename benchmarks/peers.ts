/** Other products to compare with: installed when needed, each in its own process. */
import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';

const HERE = join(import.meta.dirname, 'peers');
const INSTALL_WITHIN_MS = 5 * 60_000;

/**
 * Installs the products from their lock file, unless they are installed.
 *
 * @throws Error with the output of npm
 */
export function installPeers(): void {
  const at = (path: string) => statSync(join(HERE, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // npm records what it has installed in a file. If that file is older than the lock file, the installation is outdated.
  if (at('node_modules/.package-lock.json') >= at('package-lock.json')) return;
  const { status, stdout, stderr, error } = spawnSync(
    'npm',
    ['ci', '--ignore-scripts', '--no-audit', '--no-fund'],
    { cwd: HERE, encoding: 'utf8', timeout: INSTALL_WITHIN_MS },
  );
  if (status !== 0) throw new Error(`The peers could not be installed: ${stdout}${stderr}${error ?? ''}`);
}

export interface QueueServer {
  url: string;
  /** The number of jobs in its database. */
  stored(): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Starts a server with Flowhook's queue route and another queue behind it.
 *
 * @param kind a file of `peers/`; `nothing` needs no installation
 * @param at the database: a URL, or the path of a socket
 */
export async function startQueueServer(
  kind: 'nothing' | 'pg-boss' | 'graphile-worker' | 'bullmq',
  at = '',
): Promise<QueueServer> {
  const server = fork(join(HERE, 'queue-server.mjs'), [kind, at]);
  const [url] = await Promise.race([
    once(server, 'message') as Promise<[string]>,
    once(server, 'exit').then(([code]) => {
      throw new Error(`${kind} ended with ${code} before it listened`);
    }),
  ]);
  return {
    url,
    stored: async () => Number(await (await fetch(`${url}/stored`)).text()),
    async stop() {
      if (!server.connected) return;
      const ended = once(server, 'exit');
      server.disconnect();
      await ended;
    },
  };
}
