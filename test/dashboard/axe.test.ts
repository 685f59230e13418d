/** Every page of the dashboard, looked at by axe-core: in both themes, and as narrow as a telephone. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after } from 'node:test';
import { Flowhook } from 'flowhook-client';
import type { Page } from 'playwright-core';
import { AXE, browserTest, signedInTests } from '../support/browser/browser.ts';
import { textFindings } from '../support/browser/page-text.ts';
import { startService } from '../support/service.ts';

interface Look {
  name: string;
  colorScheme: 'light' | 'dark';
  viewport: { width: number; height: number };
  /** Of axe; all unless told. */
  rules?: readonly string[];
}

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 800 };
const LIGHT: Look = { name: 'light', colorScheme: 'light', viewport: WIDE };
const DARK: Look = { name: 'dark at 360 px', colorScheme: 'dark', viewport: NARROW };
/** Between themes only colours differ. */
const CONTRAST = ['color-contrast'];
/**
 * The looks that pages are given in turns, so that both themes and both widths are seen on half of them; in the long form,
 * `AXE_LOOKS=all`, every page is given every look.
 */
const TURNS: readonly (readonly Look[])[] =
  process.env.AXE_LOOKS === 'all'
    ? [
        [
          LIGHT,
          DARK,
          { name: 'dark', colorScheme: 'dark', viewport: WIDE, rules: CONTRAST },
          { name: 'light at 360 px', colorScheme: 'light', viewport: NARROW, rules: CONTRAST },
        ],
      ]
    : [[LIGHT], [DARK]];
const axe = await readFile(AXE, 'utf8');

const LONG =
  'a name that is much longer than any column has room for, in one word-that-cannot-be-broken-anywhere';
const service = await startService({
  workflows: {
    'default/people.yaml': `name: People of ${LONG}\nsource: { type: push }\n`,
    'default/failing.yaml': `source: { type: command, command: [sh, -c, 'echo "It went wrong" >&2; exit 1'] }\nretries: { max: 0 }\n`,
    'default/nameless.yaml': `source: { type: command, command: [printf, '{"name":1}\\n'] }\nretries: { max: 0 }\n`,
    'default/scheduled.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\nschedule: { cron: '0 6 * * *', timezone: Europe/Berlin }\n`,
  },
});
after(() => service.stop());
/** Pages of what is not as it should be, which say why in sentences of the service. */
let troubled: string[] = [];
const paths = pathsOf(
  await readFile(join(import.meta.dirname, '../../dashboard/src/routes.tsx'), 'utf8'),
  await realIds(),
);

const pageTest = signedInTests(() => service);

browserTest('the sign-in page can be seen, heard and reached: axe finds nothing', async ({ page }) => {
  await page.goto(`${service.url}/ui/`);
  await page.getByLabel('API key').waitFor();
  assert.deepEqual(await findingsOf(page, 'signing in', [LIGHT, DARK]), []);
});

pageTest('so can every other page', async ({ page, open }) => {
  const findings: string[] = [];
  const titles = new Map<string, string>();
  for (const [at, path] of paths.entries()) {
    await open(path);
    await settled(page);
    assert.equal(await page.locator('h1').count(), 1, `${path} has one h1`);
    titles.set(path, await page.title());
    findings.push(...(await findingsOf(page, path, TURNS[at % TURNS.length] ?? [])));
  }
  assert.deepEqual(findings, []);
  for (const [path, title] of titles) assert.match(title, /^.+ · Flowhook$/, `${path} has a title`);
});

pageTest('times stay whole at every width, and no page shows machine text', async ({ page, open }) => {
  const chooseTimes = async (name: string) => {
    await page.getByRole('button', { name: /^Times:/ }).click();
    await page.getByRole('menuitemradio', { name }).click();
    await page.keyboard.press('Escape');
  };
  await open('runs');
  await chooseTimes('UTC');
  const findings: string[] = [];
  for (const path of [...paths, ...troubled]) {
    await open(path);
    await settled(page);
    for (const width of [1440, 768, 360]) {
      await page.setViewportSize({ width, height: 900 });
      await settled(page);
      findings.push(...(await textFindings(page)).map((line) => `${path} at ${width} px: ${line}`));
      const isTooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
      if (isTooWide) findings.push(`${path} at ${width} px is wider than the window`);
    }
  }
  await page.setViewportSize(WIDE);
  await chooseTimes('3 min ago');
  for (const path of ['', 'webhooks', ...troubled]) {
    await open(path);
    await settled(page);
    findings.push(...(await textFindings(page)).map((line) => `${path} with ages: ${line}`));
  }
  assert.deepEqual(findings, []);
});

pageTest('so can what opens above a page', async ({ page, open }) => {
  await open('keys');
  const findings: string[] = [];
  let looks = 0;
  const look = async (name: string) => {
    findings.push(...(await findingsOf(page, name, TURNS[looks++ % TURNS.length] ?? [])));
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  };
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByRole('dialog', { name: 'New key' }).waitFor();
  await look('making a key');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await look('the shortcuts');
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Search everything' }).waitFor();
  await look('the palette');
  await page.setViewportSize(NARROW);
  await page.getByRole('button', { name: 'Pages', exact: true }).click();
  await page.getByRole('link', { name: 'Runs' }).waitFor();
  findings.push(...(await lookedAt(page, 'the pages at 360 px')));
  assert.deepEqual(findings, []);
});

/** Each finding as a line. Afterwards the page is light and wide again. */
async function findingsOf(page: Page, name: string, looks: readonly Look[]): Promise<string[]> {
  const found: string[] = [];
  for (const { name: look, colorScheme, viewport, rules } of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(viewport);
    await settled(page, colorScheme);
    found.push(...(await lookedAt(page, `${name}, ${look}`, rules)));
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(WIDE);
  return found;
}

/** As the page stands at the moment. That it fits the window is not checked by axe, but scrolling sideways is a nuisance. */
async function lookedAt(page: Page, name: string, rules?: readonly string[]): Promise<string[]> {
  const isLoaded = await page.evaluate(() => 'axe' in globalThis);
  if (!isLoaded) await page.evaluate(axe);
  // Otherwise axe describes every node that passes, too.
  const onlyFindings = { resultTypes: ['violations'] };
  const options = JSON.stringify(rules === undefined ? onlyFindings : { ...onlyFindings, runOnly: rules });
  const found: string[] = await page.evaluate(
    `axe.run(${options}).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ': ' + failureSummary)))`,
  );
  const isTooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
  return [...found, ...(isTooWide ? ['is wider than the window'] : [])].map((line) => `${name}: ${line}`);
}

/** Nothing is loading, and the colour scheme has been drawn. */
async function settled(page: Page, colorScheme: 'light' | 'dark' = 'light'): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
  const waiting = page.locator('#page :is(.mantine-Skeleton-root, .mantine-Loader-root)');
  await waiting.first().waitFor({ state: 'detached' });
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
}

/** The paths of all pages, read from the table of routes, with something real in place of each parameter. */
function pathsOf(table: string, ids: Readonly<Record<string, string>>): string[] {
  const found = [...table.matchAll(/\b(at|tab)\('([^']+)'/g)].map(([, kind, path = '']) =>
    kind === 'tab' ? `/workflows/$workflowId${path}` : path,
  );
  assert.ok(found.length > 20, 'the table of pages is read');
  return [...found, '/no-such-page'].map((path) =>
    path
      .slice(1)
      .replaceAll(/\$(\w+)/g, (_, name: string) => ids[name] ?? assert.fail(`there is no ${name}`)),
  );
}

/** One of each kind, with something to show: records that changed, a run that failed, deliveries that did and did not. */
async function realIds(): Promise<Record<string, string>> {
  const flowhook = new Flowhook({ url: service.url, key: service.key });
  const inspector = await flowhook.inspectors.create();
  const { id: webhookId } = await flowhook.webhooks.subscribeToAll({ url: inspector.url, events: ['*'] });
  await flowhook.webhooks.subscribe({
    workflowId: 'people',
    url: 'http://127.0.0.1:9/closed',
    events: ['*'],
  });
  await flowhook.workflows.push('people', [
    { id: '1', name: 'Ada Lovelace', email: 'ada@example.com', note: `<b>${LONG}</b>` },
    { id: '2', name: 'Grace Hopper', born: 1906, languages: ['COBOL', 'Flow-Matic'] },
  ]);
  await flowhook.workflows.push('people', [{ id: '1', name: 'Ada King', email: 'ada@example.com' }]);
  troubled = await troubles(flowhook);
  const { jobId } = await flowhook.workflows.queue('failing');
  await flowhook.jobs.wait(jobId);
  const [event] = await flowhook.events.history({ jobId, type: ['workflow_failed'] }).take(1);
  const eventId = event?.id ?? assert.fail('nothing was told');
  const [delivery] = await flowhook.events.deliveries(eventId).take(1);
  return {
    workflowId: 'people',
    jobId,
    webhookId,
    eventId,
    inspectorId: inspector.id,
    deliveryId: delivery?.id ?? assert.fail('nobody was told'),
  };
}

/** A run whose error names a field, a webhook that the service has paused, and one that is held back, with its test event. */
async function troubles(flowhook: Flowhook): Promise<string[]> {
  const { jobId } = await flowhook.workflows.queue('nameless');
  await flowhook.jobs.wait(jobId);
  const events = ['workflow_failed'];
  const { id: paused } = await flowhook.webhooks.subscribeToAll({ url: 'http://127.0.0.1:9/paused', events });
  const reason = 'Nothing has been received for five days, since 2026-11-15T20:57:18.041Z. `Retry-After`: 60';
  await flowhook.webhooks.pause(paused, { reason });
  const { id: held } = await flowhook.webhooks.subscribeToAll({ url: 'http://127.0.0.1:9/held', events });
  for (let count = 0; count < 14; count += 1) await flowhook.webhooks.test(held);
  while ((await flowhook.webhooks.get(held)).breaker.state !== 'open') await flowhook.webhooks.get(held);
  const { deliveryId } = await flowhook.webhooks.test(held);
  return [`runs/${jobId}`, `webhooks/${paused}`, `webhooks/${held}`, `deliveries/${deliveryId}`];
}
