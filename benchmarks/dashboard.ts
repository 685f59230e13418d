/** The dashboard in a browser: what the first visit loads, and whether pages slow down with more data. */
import { DatabaseSync } from 'node:sqlite';
import type { Browser, Page } from 'playwright-core';
import { BackgroundBuild } from '../src/http/ui/background-build.ts';
import { silentLogger } from '../src/observe/log.ts';
import { newId } from '../src/std/id.ts';
import { startChromium } from '../test/support/browser/chromium.ts';
import type { Benchmark, Contestant } from './benchmark.ts';
import { type Flowhook, startFlowhook } from './flowhook.ts';

const ROOT = new URL('..', import.meta.url).pathname;
const SIZES = [
  { workflows: 10, runs: 100 },
  { workflows: 1_000, runs: 100_000 },
];
const DAY_MS = 86_400_000;
const PAGES = {
  overview: { path: '', shows: '#page tbody tr' },
  workflows: { path: 'workflows', shows: '#page tbody tr' },
  'one workflow': { path: 'workflows/w0/runs', shows: '#page tbody tr' },
  runs: { path: 'runs', shows: '#page tbody tr' },
  'failed runs': { path: 'runs?state=failed', shows: '#page tbody tr' },
};

const benchmark: Benchmark = {
  about:
    'Headless Chromium without a cache, from the navigation to the first row. "sign-in" is the first visit without a session, ' +
    'until the user can type; the size of its script is that of the compressed response (br). SQLite; the service runs in its own process.',
  units: {
    'sign-in, script': 'kB',
    'sign-in': 'ms',
    ...Object.fromEntries(Object.keys(PAGES).map((name) => [name, 'ms'])),
  },
  limit: '10 workflows, 100 runs',
  async setUp() {
    const environment = new Map([['PATH', process.env.PATH ?? '']]);
    await new BackgroundBuild({ root: ROOT, log: silentLogger, environment }).start();
    const browser = await startChromium();
    const services: Flowhook[] = [];
    const contestants: Contestant[] = [];
    for (const size of SIZES) {
      const files = Array.from({ length: size.workflows }, (_, n) => [
        `default/w${n}.yaml`,
        'source: { type: push }\n',
      ]);
      const flowhook = await startFlowhook(Object.fromEntries(files), { FLOWHOOK_DASHBOARD: 'on' });
      services.push(flowhook);
      await flowhook.applied(`w${size.workflows - 1}`);
      fill(flowhook, size);
      const name = `${size.workflows.toLocaleString('en')} workflows, ${size.runs.toLocaleString('en')} runs`;
      contestants.push({ name, round: () => look(browser, flowhook) });
    }
    return {
      contestants,
      tearDown: async () => {
        await browser.close();
        for (const flowhook of services) await flowhook.stop();
      },
    };
  },
};
export default benchmark;

/** Inserts runs of the last days, 5 % of them failed. */
function fill({ databaseUrl }: Flowhook, { workflows, runs }: (typeof SIZES)[number]): void {
  const database = new DatabaseSync(databaseUrl.replace(/^sqlite:/, ''), { timeout: 30_000 });
  const { id: teamId } = database.prepare('select id from team').get() as { id: string };
  const insert = database.prepare(
    `insert into job (team_id, id, workflow_id, slot, state, origin, attempt, run_at, reason, error,
                      created_at, started_at, finished_at)
     values (?, ?, ?, 0, ?, 'api', 1, ?, ?, ?, ?, ?, ?)`,
  );
  const startMs = Date.now() - 3 * DAY_MS;
  database.exec('begin immediate');
  for (let n = 0; n < runs; n++) {
    const at = Math.floor(startMs + (n * 2 * DAY_MS) / runs);
    const [state, reason, error] =
      n % 20 === 0 ? ['failed', 'error', 'The list returned 503'] : ['finished', null, null];
    const workflow = `w${n % workflows}`;
    insert.run(teamId, newId('job', at), workflow, state, at, reason, error, at, at + 5, at + 900);
  }
  database.exec('commit');
  database.close();
}

async function look(browser: Browser, { url, headers }: Flowhook): Promise<Record<string, number>> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const page = await context.newPage();
    const client = await context.newCDPSession(page);
    await client.send('Network.enable');
    await client.send('Network.setCacheDisabled', { cacheDisabled: true });
    const scripts = new Set<string>();
    let bytes = 0;
    client.on('Network.responseReceived', ({ type, requestId }) => {
      if (type === 'Script') scripts.add(requestId);
    });
    client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      if (scripts.has(requestId)) bytes += encodedDataLength;
    });
    const figures: Record<string, number> = {};
    figures['sign-in'] = await until(page, `${url}/ui/`, 'input[type="password"]');
    figures['sign-in, script'] = bytes / 1_000;
    await page.getByLabel('API key').fill(headers['x-api-key'] ?? '');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation').first().waitFor();
    for (const [name, { path, shows }] of Object.entries(PAGES))
      figures[name] = await until(page, `${url}/ui/${path}`, shows);
    return figures;
  } finally {
    await context.close();
  }
}

async function until(page: Page, address: string, shows: string): Promise<number> {
  const startMs = performance.now();
  await page.goto(address, { waitUntil: 'commit' });
  await page.locator(shows).first().waitFor();
  return performance.now() - startMs;
}
