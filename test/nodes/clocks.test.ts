/** Three nodes on one PostgreSQL, with clocks ten minutes slow, correct and ten minutes fast, work as with correct clocks. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import { call, KEY } from '../support/faults/crash.ts';
import { administer, makeDatabase } from '../support/postgres.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

const SHIFTS_MS = [-600_000, 0, 600_000];
const LEASE_MS = 2_500;
/** Tolerance between two times of this machine, for the work in between. */
const NEAR_MS = 30_000;
const PROGRAM = join(import.meta.dirname, '../support/faults', 'short-lease-server.ts');
/** Runs for longer than a lease: a node that used its own clock would take the job from its holder, or lose it. */
const SOURCE = `source:
  type: command
  command: [sh, -c, 'sleep 3; echo "{\\"id\\":\\"1\\",\\"run\\":\\"$FLOWHOOK_JOB\\"}"']
`;
const YEARLY = `${SOURCE}schedule: "0 0 1 1 *"\n`;
const WORKFLOWS = ['a', 'b', 'c', 'd', 'e'];

test('clocks that are ten minutes off change nothing', { timeout: 120_000 }, async (t) => {
  const { nodes, url } = await startNodes(t);
  // The receiver rejects every event once.
  const seen = new Set<string>();
  const at = new Map<string, number[]>();
  const receiver = await startReceiver({
    status({ event }) {
      at.set(event.id, [...(at.get(event.id) ?? []), performance.now()]);
      if (seen.has(event.id)) return 204;
      seen.add(event.id);
      return 500;
    },
  });
  t.after(() => receiver.stop());
  const secrets = new Map<string, string>();
  for (const id of [...WORKFLOWS, 'yearly']) {
    secrets.set(id, await subscribe(nodes[2] as ServerProcess, id, receiver));
  }

  for (const [n, id] of WORKFLOWS.entries()) {
    const answer = await call(nodes[n % 3] as ServerProcess, 'POST', `/v1/workflows/${id}/queue`);
    assert.equal(answer.status, 200, await answer.text());
  }
  const dueMs = Date.now() + 1_500;
  await administer(url, `update workflow set next_run_at = ${dueMs} where id = 'yearly'`);
  const all = WORKFLOWS.length + 1;
  await receiver.until(() => ofType(receiver, 'workflow_finished').size === all, 'the ends of all', 60_000);
  const isRetried = () => [...at.values()].every((times) => times.length >= 2);
  await receiver.until(isRetried, 'a retry of every event', 60_000);

  const store = await openStore(url, { publicUrl: () => '', log: silentLogger });
  t.after(() => store.close());
  const { id: teamId } = await store.teams.ensure({ slug: 'default' });
  const jobs = await store.jobs.list({ teamId, limit: 100 });
  assert.equal(jobs.length, all, 'a schedule queues once');
  for (const job of jobs) {
    assert.deepEqual([job.state, job.attempt, job.crashes], ['finished', 1, 0], 'no other node took the job');
    assert.ok(near(job.createdAt) && near(madeAt(job.id)));
  }
  assert.deepEqual(
    jobs.map((job) => job.createdAt),
    jobs.map((job) => job.createdAt).sort((a, b) => b - a),
    'newest first, whichever node queued the job',
  );
  const scheduled = jobs.filter((job) => job.origin === 'schedule');
  assert.equal(scheduled.length, 1);
  const lateMs = (scheduled[0]?.createdAt ?? 0) - dueMs;
  assert.ok(lateMs >= 0 && lateMs < NEAR_MS, `${lateMs} ms after it was due`);

  for (const { headers, text, event } of receiver.received) {
    const secret = secrets.get(event.workflowId ?? '') ?? '';
    assert.doesNotThrow(() => new Webhook(secret).verify(text, headers as Record<string, string>));
    assert.ok(near(Number(headers['webhook-timestamp']) * 1_000));
  }
  for (const [first = 0, second = 0, ...more] of at.values()) {
    assert.ok(second - first > 4_500 && second - first < NEAR_MS, `retried after ${second - first} ms`);
    assert.deepEqual(more, []);
  }
});

async function startNodes(t: TestContext): Promise<{ nodes: ServerProcess[]; url: string }> {
  const { url, drop } = await makeDatabase();
  t.after(() => drop());
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-clocks-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const workflows = join(directory, 'workflows');
  await mkdir(join(workflows, 'default'), { recursive: true });
  for (const id of WORKFLOWS) await writeFile(join(workflows, 'default', `${id}.yaml`), SOURCE);
  await writeFile(join(workflows, 'default', 'yearly.yaml'), YEARLY);
  const encryptionKey = randomBytes(32).toString('hex');
  const starting = SHIFTS_MS.map((shiftMs, n) =>
    startServerProcess(
      {
        FLOWHOOK_DATABASE: url,
        FLOWHOOK_ENCRYPTION_KEY: encryptionKey,
        FLOWHOOK_DATA: join(directory, String(n)),
        FLOWHOOK_WORKFLOWS: workflows,
        FLOWHOOK_BOOTSTRAP_KEY: KEY,
        FLOWHOOK_ALLOW_NETWORKS: 'loopback',
        FLOWHOOK_LOG_LEVEL: 'warn',
        FLOWHOOK_MAX_RUNNING_JOBS: '2',
        LEASE_MS: String(LEASE_MS),
        CLOCK_SHIFT_MS: String(shiftMs),
        NODE_OPTIONS: `--import=${join(import.meta.dirname, '../support/faults', 'shifted-clock.ts')}`,
      },
      { program: PROGRAM },
    ),
  );
  t.after(async () => {
    for (const one of await Promise.allSettled(starting)) {
      if (one.status === 'fulfilled') await one.value.kill();
    }
  });
  return { nodes: await Promise.all(starting), url };
}

/** Subscribes to all events of a workflow; returns the secret. */
async function subscribe(node: ServerProcess, workflowId: string, { url }: Receiver): Promise<string> {
  const body = { workflowId, webhookUrl: url, events: ['*'] };
  const answer = await call(node, 'POST', '/v1/integrations/webhooks/subscribe', body);
  const id = answer.headers.get('x-webhook-id');
  const secret = await call(node, 'GET', `/v1/integrations/webhooks/${id}/secret`);
  return ((await secret.json()) as { secret: string }).secret;
}

function ofType({ received }: Receiver, type: string): Set<string> {
  return new Set(received.filter(({ event }) => event.type === type).map(({ event }) => event.id));
}

function near(ms: number): boolean {
  return Math.abs(ms - Date.now()) < NEAR_MS * 3;
}

/** The time in an id: the first 48 of 128 bits, which are encoded with two leading zero bits. */
function madeAt(id: string): number {
  const digits = '0123456789abcdefghjkmnpqrstvwxyz';
  const text = id.slice(id.indexOf('_') + 1);
  return Number([...text].reduce((sum, digit) => sum * 32n + BigInt(digits.indexOf(digit)), 0n) >> 80n);
}
