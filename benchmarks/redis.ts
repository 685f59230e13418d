/** A Redis server for benchmarks with an append-only file, on a socket in a temporary directory. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The program that `FLOWHOOK_BENCH_REDIS` names, or `redis-server` on the path. Undefined if there is none. */
export function redisProgram(): string | undefined {
  const program = process.env.FLOWHOOK_BENCH_REDIS ?? 'redis-server';
  return spawnSync(program, ['--version']).status === 0 ? program : undefined;
}

/** @param appendfsync `always` waits for the disk before it responds, as databases do; `everysec` may lose a second */
export async function startRedis(
  program: string,
  appendfsync: 'always' | 'everysec',
): Promise<{ socket: string; stop(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'fhredis-'));
  const socket = join(directory, 'redis.sock');
  // The shell ends Redis when its input ends: on `stop`, or when this process ends for any reason.
  const script = `
    '${program}' --port 0 --unixsocket '${socket}' --dir '${directory}' --save '' --appendonly yes \\
      --appendfsync ${appendfsync} --logfile redis.log &
    read -r line
    kill $!
    wait $!
    rm -rf '${directory}'`;
  const shell = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'ignore', 'inherit'], detached: true });
  const ended = once(shell, 'exit');
  await isListening(socket);
  return {
    socket,
    async stop() {
      shell.stdin.end();
      await ended;
    },
  };
}

/** Resolves when Redis is listening. Throws after ten seconds. */
async function isListening(path: string): Promise<void> {
  for (const until = performance.now() + 10_000; ; ) {
    const socket = connect({ path });
    try {
      await once(socket, 'connect');
      return;
    } catch (error) {
      if (performance.now() > until) throw new Error('Redis did not start', { cause: error });
      await new Promise((later) => setTimeout(later, 20));
    } finally {
      socket.destroy();
    }
  }
}
