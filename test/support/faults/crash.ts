/** What the tests that kill the server have in common: calls that may be cut off, and load that may. */
import assert from 'node:assert/strict';
import type { ServerProcess } from '../server-process.ts';

export const KEY = 'key-of-the-crash-test';

export async function subscribe(
  server: ServerProcess,
  workflowId: string,
  webhookUrl: string,
): Promise<void> {
  const answer = await call(server, 'POST', '/v1/integrations/webhooks/subscribe', {
    workflowId,
    webhookUrl,
    events: ['*'],
  });
  assert.equal(answer.status, 200, await answer.text());
}

/** Queues the workflow as fast as it is taken, and notes the jobs that were. */
export async function queueAgainAndAgain(
  server: ServerProcess,
  id: string,
  accepted: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const answer = await call(server, 'POST', `/v1/workflows/${id}/queue`).catch(() => undefined);
    // Killed: whether this one was taken nobody was told.
    if (answer === undefined) return;
    assert.ok(answer.status === 200 || answer.status === 400, String(answer.status));
    if (answer.status === 200) accepted.add(answer.headers.get('x-job-id') ?? '');
    await answer.body?.cancel().catch(() => {});
  }
}

export function call(server: ServerProcess, method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(server.url + path, {
    method,
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/**
 * The random end of a life. Every other one begins when the load has been taken once more, so that a machine that is
 * slow to start it cannot make a test of lives in which nothing happened.
 */
export async function lived(input: {
  round: number;
  accepted: ReadonlySet<string>;
  maxMs: number;
}): Promise<void> {
  const before = input.accepted.size;
  const giveUpAt = performance.now() + 60_000;
  while (input.round % 2 === 0 && input.accepted.size === before) {
    assert.ok(performance.now() < giveUpAt, 'nothing was accepted for a minute');
    await elapsed(5);
  }
  await elapsed(Math.random() * input.maxMs);
}

/** The random moment of the crash is the one thing here that time itself must bring. */
export function elapsed(ms: number): Promise<void> {
  return new Promise((arrive) => {
    setTimeout(arrive, ms);
  });
}
