/** Starts a server with `fork`. It sends its URL when it listens, and ends with its parent. */
import { fork } from 'node:child_process';
import { once } from 'node:events';

export async function forked(
  script: URL,
  args: string[],
): Promise<{ url: string; pid: number; stop(): Promise<void> }> {
  const child = fork(script, args);
  const exited = once(child, 'exit');
  const message = await Promise.race([once(child, 'message'), exited]);
  if (typeof message[0] !== 'string') throw new Error(`${script.pathname} ended before it listened`);
  return {
    url: message[0],
    pid: child.pid as number,
    async stop() {
      child.disconnect();
      await exited;
    },
  };
}
