/**
 * `kill -9` at random moments while mails are sent, from the push of records to the reply of the SMTP server.
 * Deterministic: the invariants afterwards. Not deterministic: the moments.
 *
 * `MAIL_CRASH_ROUNDS=50 node --test test/faults/mail-crash.test.ts` is the long form.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { MAX_LIMIT } from '../../src/model/lane.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import {
  CRASHING_SERVER,
  call,
  crashingEnvironment,
  elapsed,
  lived,
  maxLifeMs,
  queueAgainAndAgain,
} from '../support/faults/crash.ts';
import { smtpReceiver } from '../support/mail/smtp-receiver.ts';
import { startServerProcess } from '../support/server-process.ts';
import { testDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const ROUNDS = Number(process.env.MAIL_CRASH_ROUNDS ?? 3);
const MAX_LIFE_MS = maxLifeMs(500);
/** Delays replies, so that mails are being sent at any moment. */
const MAX_REPLY_MS = 20;

type Json = Record<string, unknown>;

test(`kill -9 at ${ROUNDS} random moments loses no mail, and repeats only unsettled ones with their Message-ID`, {
  timeout: 600_000,
}, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-mail-crash-'));
  const database = await testDatabase(directory);
  const smtp = await smtpReceiver({
    onMail: () => elapsed(Math.random() * MAX_REPLY_MS).then(() => undefined),
  });
  t.after(() => smtp.close());
  const environment = {
    ...crashingEnvironment(directory, database),
    FLOWHOOK_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
    FLOWHOOK_MAIL_FROM: 'flowhook@example.com',
  };
  const files = join(directory, 'workflows', 'default');
  await mkdir(files, { recursive: true });
  await writeFile(join(files, 'a.yaml'), 'source: { type: command, command: ["true"] }\n');
  let server = await startServerProcess(environment, CRASHING_SERVER);
  t.after(async () => {
    await server.kill();
    await database.drop();
    await rm(directory, { recursive: true, force: true });
  });
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await call(server, method, path, body);
    assert.equal(response.status, 200, path);
    return (await response.json()) as Json;
  };
  const hooks = '/v1/integrations/webhooks';
  const hook = await ask('POST', hooks, {
    webhookUrl: 'mailto:ops@example.org',
    events: ['workflow_queued'],
  });
  const [link = ''] = (await smtp.mail(1)).mail.text?.match(/http:\S+\/mail\/verify\/\S+/) ?? [];
  assert.equal((await fetch(link, { method: 'POST' })).status, 200);

  const accepted = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const load = new AbortController();
    const working = queueAgainAndAgain(server, 'a', accepted, load.signal);
    await lived({ round, accepted, maxMs: MAX_LIFE_MS });
    await server.kill();
    load.abort();
    await working;
    server = await startServerProcess(environment, CRASHING_SERVER);
  }
  const isSettled = async () => {
    const { deliveries } = await ask('GET', `${hooks}/${hook.id}/deliveries?state=waiting`);
    const { decisions } = await ask('GET', `${hooks}/${hook.id}/decisions?state=pending`);
    return (deliveries as []).length + (decisions as []).length === 0;
  };
  await until('everything was sent', isSettled);

  assert.equal(await server.stop(), 0, server.output());
  const queued = await withStore(database.url, async (store, teamId) => {
    const events = await store.events.list({ teamId, afterSequence: 0, limit: 100_000 });
    return events.filter(({ type }) => type === 'workflow_queued').length;
  });
  const counts = new Map<string, number>();
  const [, ...notices] = smtp.mails;
  for (const { headers, to } of notices) {
    assert.equal(to, 'ops@example.org');
    const id = headers['message-id'] ?? '';
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  assert.equal(counts.size, queued, 'each event arrived');
  const repeated = notices.length - counts.size;
  for (const [id, count] of counts) assert.ok(count <= 1 + ROUNDS, `${id} arrived ${count} times`);
  assert.ok(repeated <= ROUNDS * 2 * MAX_LIMIT, `${repeated} mails were repeated`);
  console.log(
    `${ROUNDS} kills, ${accepted.size} jobs accepted, ${notices.length} mails, ${repeated} of them repeated`,
  );
  assert.ok(Math.min(accepted.size, notices.length) >= ROUNDS / 2, 'the load was real');
});

async function withStore<T>(url: string, act: (store: Store, teamId: string) => Promise<T>): Promise<T> {
  const store = await openStore(url, { own: false, publicUrl: () => '', log: silentLogger });
  try {
    const team = await store.teams.bySlug({ slug: 'default' });
    return await act(store, team?.id ?? '');
  } finally {
    await store.close();
  }
}
