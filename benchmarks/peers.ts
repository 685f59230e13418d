/** Other products under measurement: installed when they are asked for, each in a process of its own. */
import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';

const HERE = join(import.meta.dirname, 'peers');
const INSTALL_WITHIN_MS = 5 * 60_000;

/** Installs what their lock file names, unless that was done. Throws an Error with what npm said. */
export function installPeers(): void {
  const at = (path: string) => statSync(join(HERE, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // npm notes what it has installed in a file of its own; an older one than the lock file is out of date.
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
  /** How many jobs its database has. */
  stored(): Promise<number>;
  stop(): Promise<void>;
}

/**
 * The queue route of Flowhook with something else behind it.
 * @param kind a file of `peers/`; `nothing` needs no installation
 * @param at where its database is: a URL, or the path of a socket
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
