/** The memory limit of process groups, with real processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { finish, start } from '../../../test/support/jobs/sources.ts';
import { watchMemory } from './groups.ts';

/** Starts a process group, and resolves with its id once the script has printed something. */
async function holder(t: TestContext, script: string): Promise<number> {
  const child = spawn(process.execPath, ['-e', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const pid = child.pid as number;
  t.after(() => process.kill(-pid, 'SIGKILL'));
  await once(child.stdout, 'data');
  return pid;
}

const HOLDS = "const held = Buffer.alloc(100e6, 1); console.log('ready'); setInterval(() => held[0], 1000)";

test('reports a group over its limit once, and no other group', async (t) => {
  const [large, small] = await Promise.all([
    holder(t, HOLDS),
    holder(t, "console.log('ready'); setInterval(() => {}, 1000)"),
  ]);
  const told: number[] = [];
  const excess = Promise.withResolvers<number>();
  const ends = [
    watchMemory({ groupId: small, limitBytes: 120e6, onExcess: () => told.push(small) }),
    watchMemory({
      groupId: large,
      limitBytes: 120e6,
      onExcess(bytes) {
        told.push(large);
        excess.resolve(bytes);
      },
    }),
  ];
  const bytes = await keepAlive(excess.promise);
  assert.ok(bytes > 120e6 && bytes < 400e6, `${bytes} bytes`);
  assert.deepEqual(told, [large]);
  for (const end of ends) end();
});

test('memory that processes share after a fork is counted once', async (t) => {
  // sh holds 60 MB in a variable and forks five times: together the copies would be 300 MB more.
  const script = `x=$(head -c 60000000 /dev/zero | tr '\\0' x); for n in 1 2 3 4 5; do (read -r _ <&3; : "$x") & done; echo ready; wait`;
  const child = spawn('/bin/sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  });
  const pid = child.pid as number;
  t.after(() => process.kill(-pid, 'SIGKILL'));
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  const over = Promise.withResolvers<number>();
  const all = watchMemory({
    groupId: pid,
    limitBytes: 250e6,
    onExcess: () => over.reject(new Error('onExcess was called')),
  });
  const sentinel = watchMemory({ groupId: pid, limitBytes: 30e6, onExcess: over.resolve });
  const bytes = await keepAlive(over.promise);
  assert.ok(bytes < 250e6, `${bytes} bytes`);
  all();
  sentinel();
});

test('the kernel kills a child before the server when memory runs out', async (t) => {
  const own = readFileSync('/proc/self/oom_score_adj', 'utf8').trim();
  const { lines } = await finish(
    await start(t, { command: ['sh', '-c', 'echo "[$(cat /proc/self/oom_score_adj)]"'] }),
  );
  assert.deepEqual(lines, ['[300]']);
  assert.notEqual(own, '300');
});

/** Keeps this process running, because the watch does not. */
async function keepAlive<T>(promise: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 1_000);
  try {
    return await promise;
  } finally {
    clearInterval(timer);
  }
}
