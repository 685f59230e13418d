/** The service in the screenshots: the example workflows, fictional people and a day of history. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Conflict, Flowhook, type Job } from '../../client/src/flowhook-client.ts';
import { readConfig } from '../../src/config/config.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { type Service, startService } from '../../src/service/service.ts';

const ROOT = join(import.meta.dirname, '../..');
const HOUR_MS = 3_600_000;
const HOURS = 24;
const KEY = 'key-of-the-screenshots';
const ENDED = ['finished', 'failed', 'canceled'];

/** In addition to the examples: pushed people, a failing workflow, and one whose run does not end. */
const MORE = {
  'crm-contacts.yaml': `name: CRM contacts
source: { type: push }
mode: upsert
expect: { fields: { visits: { type: number, min: 0 } }, otherwise: quarantine }
`,
  'newsletter.yaml': `name: Newsletter
source:
  type: command
  command: [sh, -c, 'echo "Reading the list of subscribers" >&2; echo "The list returned 503: maintenance until 06:00" >&2; exit 1']
schedule: { cron: "30 5 * * *", timezone: Europe/Berlin }
retries: { max: 0 }
`,
  'address-check.yaml': `name: Address check
source:
  type: command
  command: [sh, -c, 'for n in 1 2 3 4 5 6; do echo "{\\"id\\":$n,\\"city\\":\\"Ghent\\"}"; echo "Checked $n of 240 addresses" >&2; done; exec sleep 600']
`,
};
const NAMES =
  'Ada Lovelace,Grace Hopper,Emmy Noether,Katherine Johnson,Hedy Lamarr,Mary Somerville,Sofia Kovalevskaya,Lise Meitner'.split(
    ',',
  );
const FIELDS = ['Analytics', 'Compilers', 'Algebra', 'Orbits', 'Radio', 'Astronomy', 'Analysis', 'Physics'];
const CITIES = ['London', 'New York', 'Göttingen', 'Hampton', 'Vienna', 'Jedburgh', 'Stockholm', 'Berlin'];

export interface World {
  url: string;
  key: string;
  flowhook: Flowhook;
  /** The ids of the resources on the pages. */
  shown: {
    failed: string;
    finished: string;
    webhook: string;
    filtered: string;
    chat: string;
    delivery: string;
    inspector: string;
    event: string;
  };
  stop(): Promise<void>;
}

export async function startWorld(): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-'));
  const stops: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const workflows = join(directory, 'workflows');
    await cp(join(ROOT, 'examples/workflows'), workflows, {
      recursive: true,
      // These contain real people: authors of this repository and of installed packages.
      filter: (path) => !/(commit|package)-authors/.test(path),
    });
    await mkdir(join(workflows, 'default'), { recursive: true });
    for (const [name, text] of Object.entries(MORE)) await writeFile(join(workflows, 'default', name), text);
    const site = spawn(process.execPath, [join(ROOT, 'examples/site/site.mts')], { stdio: 'ignore' });
    stops.push(() => ended(site));
    const receiver = await startReceiver();
    stops.push(() => new Promise((resolve) => receiver.server.close(resolve)));

    let agoMs = HOURS * HOUR_MS;
    const service = await start(directory, () => Date.now() - agoMs);
    stops.push(() => service.stop());
    const flowhook = new Flowhook({ url: service.url, key: KEY });
    const webhooks = await subscribe(flowhook, receiver.url);
    for (let hour = 0; hour <= HOURS; hour++) {
      agoMs = (HOURS - hour) * HOUR_MS;
      await liveAnHour(flowhook, hour);
    }
    const inspector = await flowhook.inspectors.create();
    await flowhook.webhooks.subscribe({
      workflowId: 'site-people',
      url: inspector.url,
      events: ['workflow_finished'],
    });
    await run(flowhook, 'site-people');
    await run(flowhook, 'newsletter');
    await flowhook.workflows.queue('address-check');
    await flowhook.webhooks.test(webhooks.healthy);
    return {
      url: service.url,
      key: KEY,
      flowhook,
      shown: await chosen(flowhook, webhooks, inspector.id),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Listens on the port of the documentation if it is free, so that URLs in the screenshots match it. */
async function start(directory: string, clock: () => number): Promise<Service> {
  const begin = (port: string) =>
    startService(
      readConfig(
        {},
        {
          FLOWHOOK_PORT: port,
          FLOWHOOK_DATA: join(directory, 'data'),
          FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
          FLOWHOOK_BOOTSTRAP_KEY: KEY,
          FLOWHOOK_LOG_LEVEL: 'error',
          PATH: process.env.PATH ?? '',
        },
        directory,
      ),
      silentLogger,
      { clock },
    );
  return begin('8080').catch(() => begin('0'));
}

async function liveAnHour(flowhook: Flowhook, hour: number): Promise<void> {
  const first = (hour * 3) % NAMES.length;
  const people = Array.from({ length: 2 + (hour % 5) }, (_, n) => (first + n) % NAMES.length).map((n) => ({
    id: `c-${1_000 + n + 8 * (hour % 12)}`,
    name: NAMES[n],
    email: `${NAMES[n]?.split(' ')[0]?.toLowerCase()}@example.org`,
    field: FIELDS[n],
    city: hour > 20 && n % 3 === 0 ? 'Paris' : CITIES[n],
    visits: 3 + ((hour * 7 + n * 5) % 40),
    customer: n % 2 === 0,
  }));
  // In the last hour one of them is set aside.
  if (hour === HOURS) Object.assign(people[0] ?? {}, { visits: -1 });
  await flowhook.workflows.push('crm-contacts', people);
  await run(flowhook, hour % 2 === 0 ? 'site-contacts' : 'site-csv');
  if (hour % 4 === 0) await run(flowhook, 'site-people');
  if (hour % 8 === 3) await run(flowhook, 'newsletter');
}

async function run(flowhook: Flowhook, workflowId: string): Promise<void> {
  const { jobId } = await flowhook.workflows.queue(workflowId).catch((error) => {
    // The schedule has already queued a run.
    if (error instanceof Conflict) return { jobId: '' };
    throw error;
  });
  if (jobId === '') return;
  for (let job: Job | undefined; job === undefined || !ENDED.includes(job.state); )
    job = await flowhook.jobs.get(jobId);
}

async function subscribe(flowhook: Flowhook, url: string) {
  const events = ['workflow_finished', 'workflow_failed', 'workflow_data_change'];
  const healthy = (await flowhook.webhooks.create({ url: `${url}/crm`, events })).id;
  const failing = (await flowhook.webhooks.create({ url: `${url}/old-crm`, events: ['workflow_failed'] })).id;
  const { webhookId: paused } = await flowhook.webhooks.subscribe({
    workflowId: 'crm-contacts',
    url: `${url}/mailing`,
    events: ['workflow_data_change'],
  });
  const { id: filtered } = await flowhook.webhooks.create({
    workflowId: 'crm-contacts',
    url: `${url}/sales`,
    events: ['workflow_data_change'],
    name: 'Frequent visitors',
    filter: 'risesAbove(previous.visits, record.visits, 25)',
  });
  const { id: chat } = await flowhook.webhooks.create({
    workflowId: 'crm-contacts',
    url: `${url}/chat`,
    events: ['workflow_data_change'],
    name: 'Sales channel',
    filter: 'change == "added" && record.customer',
    format: 'slack',
    digest: { at: '08:00', timeZone: 'Europe/Berlin' },
  });
  await flowhook.feeds.create('crm-contacts', {
    title: 'New customers',
    filter: 'change == "added" && record.customer',
  });
  await flowhook.feeds.create('crm-contacts', { entries: 'version', window: '7d' });
  await flowhook.webhooks.pause(paused, { reason: 'Moving to a new mailing tool' });
  return { healthy, failing, paused, filtered, chat };
}

async function chosen(
  flowhook: Flowhook,
  webhooks: { healthy: string; failing: string; filtered: string; chat: string },
  inspector: string,
): Promise<World['shown']> {
  const first = async <Row extends { id: string }>(pages: AsyncIterable<Row>) => {
    for await (const { id } of pages) return id;
    throw new Error('The history lacks a resource for a screenshot');
  };
  return {
    failed: await first(flowhook.jobs.list({ workflowId: 'newsletter', state: ['failed'] })),
    finished: await first(flowhook.jobs.list({ workflowId: 'site-people', state: ['finished'] })),
    webhook: webhooks.healthy,
    filtered: webhooks.filtered,
    chat: webhooks.chat,
    delivery: await mostTried(flowhook, webhooks.failing),
    inspector,
    event: await first(flowhook.events.history({ type: ['workflow_data_change'] })),
  };
}

async function mostTried(flowhook: Flowhook, webhookId: string): Promise<string> {
  let most: { id: string; attempt: number } = { id: '', attempt: 0 };
  for await (const delivery of flowhook.webhooks.deliveries(webhookId))
    if (delivery.attempt > most.attempt) most = delivery;
  return most.id;
}

async function startReceiver(): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      const isWorking = request.url !== '/old-crm';
      response
        .writeHead(isWorking ? 200 : 503, { 'content-type': 'application/json' })
        .end(isWorking ? '{"ok":true}' : '{"error":"The old CRM is read-only since Monday"}');
    });
  });
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
  await listen(9000).catch(() => listen(0));
  const address = server.address();
  return { url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`, server };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill();
  await once(child, 'exit');
}
