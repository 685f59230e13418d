/** For tests that kill the server: calls and load that may be aborted. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { ServerProcess } from '../server-process.ts';
import { onPostgres, type TestDatabase } from '../test-database.ts';

export const KEY = 'key-of-the-crash-test';

/**
 * Work of a killed server on PostgreSQL waits until its leases expire, because other nodes may be alive. So leases
 * are shorter here than 30 s, and servers live longer than that (`maxLifeMs`).
 */
export const CRASHING_SERVER = onPostgres()
  ? { program: join(import.meta.dirname, 'short-lease-server.ts') }
  : {};
const LEASE_MS = 900;

/** Maximum time from when the server listens until it crashes. @param onSqlite in milliseconds */
export function maxLifeMs(onSqlite: number): number {
  return onPostgres() ? 2_000 : onSqlite;
}

/** The environment of a server with its data and workflows in the directory. */
export function crashingEnvironment(directory: string, database: TestDatabase): Record<string, string> {
  return {
    ...database.settings,
    LEASE_MS: String(LEASE_MS),
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: KEY,
    FLOWHOOK_ALLOW_NETWORKS: 'loopback',
    // All accepted jobs are checked, and a fast machine runs more than are stored by default.
    FLOWHOOK_KEEP_JOBS: '100000',
  };
}

export async function subscribe(
  server: ServerProcess,
  workflowId: string,
  webhookUrl: string,
): Promise<void> {
  const response = await call(server, 'POST', '/v1/integrations/webhooks/subscribe', {
    workflowId,
    webhookUrl,
    events: ['*'],
  });
  assert.equal(response.status, 200, await response.text());
}

/** Queues the workflow as fast as the server accepts it, and collects the ids of the jobs. */
export async function queueAgainAndAgain(
  server: ServerProcess,
  id: string,
  accepted: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const response = await call(server, 'POST', `/v1/workflows/${id}/queue`).catch(() => undefined);
    // The server was killed. It is unknown whether it accepted this call.
    if (response === undefined) return;
    assert.ok(response.status === 200 || response.status === 400, String(response.status));
    if (response.status === 200) accepted.add(response.headers.get('x-job-id') ?? '');
    await response.body?.cancel().catch(() => {});
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
 * Waits for a random time before a crash. In every other round it first waits until a job was accepted, so that even on
 * a slow machine something happens between crashes.
 */
export async function lived(input: {
  round: number;
  accepted: { readonly size: number };
  maxMs: number;
}): Promise<void> {
  const before = input.accepted.size;
  const giveUpAt = performance.now() + 60_000;
  while (input.round % 2 === 0 && input.accepted.size === before) {
    assert.ok(performance.now() < giveUpAt, 'no job was accepted for a minute');
    await elapsed(5);
  }
  await elapsed(Math.random() * input.maxMs);
}

/** Waits for real time to pass, for the random moment of a crash. */
export function elapsed(ms: number): Promise<void> {
  return new Promise((arrive) => {
    setTimeout(arrive, ms);
  });
}
