/**
 * `npm run demo`: shows one run of Flowhook. In a temporary directory it starts the service and a webhook receiver,
 * subscribes, queues the workflow `package-authors`, and prints its records and webhooks. Exits with 0 if everything
 * arrived and every signature is valid, else with 1. Removes all its files.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { styleText } from 'node:util';
import { Webhook } from 'standardwebhooks';

const KEY = 'key-of-the-demo-0000';
const WORKFLOW = 'package-authors';
const EXPECTED = ['workflow_queued', 'workflow_started', 'workflow_data_change', 'workflow_finished'];
const PATIENCE_MS = 60_000;

interface Arrival {
  verified: boolean;
  error?: string;
  event: { type: string; data: { version?: number; records?: { total: number; added: number } } };
  headers: Record<string, string>;
  body: string;
}

const examples = import.meta.dirname;
const directory = await mkdtemp(join(tmpdir(), 'flowhook-demo-'));
const children: ChildProcess[] = [];
const patience = setTimeout(() => {
  process.stderr.write(`The demo failed: it was not done within ${PATIENCE_MS / 1_000} s\n`);
  for (const child of children) child.kill('SIGKILL');
  process.exit(1);
}, PATIENCE_MS);
const startedAt = performance.now();

try {
  say(`A demo of Flowhook in ${directory}, which is removed afterwards.`);
  const service = await step('start the service', async () => {
    const child = start(join(examples, '..', 'bin', 'flowhook.js'), ['serve', '--port', '0'], {
      FLOWHOOK_DATA: join(directory, 'data'),
      FLOWHOOK_WORKFLOWS: join(examples, 'workflows'),
      FLOWHOOK_BOOTSTRAP_KEY: KEY,
      FLOWHOOK_DASHBOARD: 'off',
      FLOWHOOK_LOG_LEVEL: 'error',
    });
    return await printed(child.lines, /^flowhook listening on (\S+)$/);
  });
  const arrivals: Arrival[] = [];
  let arrived = () => {};
  const receiver = await step('start a webhook receiver', async () => {
    const child = start(join(examples, 'receiver.mts'), ['--port', '0', '--service', service, '--json'], {});
    const url = await printed(child.lines, /^receiver listening on (\S+)$/);
    child.lines.on('line', (line) => {
      arrivals.push(JSON.parse(line) as Arrival);
      arrived();
    });
    return url;
  });
  const webhookId = await step('subscribe it to every event', async () => {
    const answer = await call(service, 'POST', '/v1/integrations/webhooks/subscribe', {
      workflowId: WORKFLOW,
      webhookUrl: receiver,
      events: ['*'],
    });
    return answer.headers.get('x-webhook-id') ?? fail('the subscription has no id');
  });
  const jobId = await step(`queue the workflow ${WORKFLOW}`, async () => {
    const answer = await call(service, 'POST', `/v1/workflows/${WORKFLOW}/queue`);
    return answer.headers.get('x-job-id') ?? fail('the job has no id');
  });
  await step('wait until the last event has arrived', async () => {
    const types = () => arrivals.map(({ event }) => event?.type);
    const refused = () => arrivals.find(({ verified }) => !verified);
    while (!EXPECTED.every((type) => types().includes(type))) {
      if (refused() !== undefined) fail(`the receiver refused a message: ${refused()?.error}`);
      if (types().includes('workflow_failed')) fail(`the job failed: ${arrivals.at(-1)?.body}`);
      await new Promise<void>((resolve) => {
        arrived = resolve;
      });
    }
  });
  const records = await step('read the data', async () => {
    const answer = await call(service, 'GET', `/v1/workflows/${WORKFLOW}/data`);
    return (await answer.json()) as { name: string; email?: string; package: string }[];
  });
  await step('verify every signature once more, with the standardwebhooks package', async () => {
    const answer = await call(service, 'GET', `/v1/integrations/webhooks/${webhookId}/secret`);
    const { secret } = (await answer.json()) as { secret: string };
    for (const { body, headers } of arrivals) new Webhook(secret).verify(body, headers);
  });

  say(`\nThe first of ${records.length} people who wrote the installed packages:`);
  for (const { name, email, package: of } of records.slice(0, 8)) {
    say(`  ${name.padEnd(26)} ${(email ?? '').padEnd(34)} ${of}`);
  }
  say(`\nWebhooks that the receiver got about ${jobId}:`);
  for (const { event, headers } of arrivals) {
    const { version, records: counts } = event.data;
    const details =
      counts === undefined ? '' : `version ${version}, ${counts.added} added, ${counts.total} in all`;
    say(`  ✓ v1 and v1a  ${event.type.padEnd(22)} ${headers['webhook-id']}  ${details}`);
  }
  if (records.length === 0) fail('there are no records');
  say(`\nThe demo took ${Math.round(performance.now() - startedAt)} ms.`);
} catch (error) {
  process.stderr.write(`The demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
} finally {
  clearTimeout(patience);
  await Promise.all(children.map(end));
  await rm(directory, { recursive: true, force: true });
}

/** Runs a step and prints how long it took. */
async function step<T>(what: string, act: () => Promise<T>): Promise<T> {
  const from = performance.now();
  const result = await act();
  say(`${String(Math.round(performance.now() - from)).padStart(6)} ms  ${what}`);
  return result;
}

function start(file: string, args: string[], settings: Record<string, string>): { lines: Interface } {
  const child = spawn(process.execPath, [file, ...args], {
    cwd: directory,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return { lines: createInterface({ input: child.stdout }) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

function printed(lines: Interface, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const found = pattern.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    lines.once('close', () => reject(new Error('a program ended before it was ready')));
  });
}

async function call(service: string, method: string, path: string, body?: object): Promise<Response> {
  const response = await fetch(service + path, {
    method,
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) fail(`${method} ${path} returned ${response.status}: ${await response.text()}`);
  return response;
}

function say(line: string): void {
  process.stdout.write(`${line.trimEnd().replace('✓', styleText('green', '✓'))}\n`);
}

function fail(why: string): never {
  throw new Error(why);
}
