/** Every page of the dashboard in both themes and several widths: checked by axe-core, and for times that are hard to read. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Page } from 'playwright-core';
import { Flowhook } from '../../client/src/flowhook-client.ts';
import { AXE, browserTest, signedInTests } from '../support/browser/browser.ts';
import { textFindings } from '../support/browser/page-text.ts';
import { startService } from '../support/service.ts';

interface Look {
  name: string;
  colorScheme: 'light' | 'dark';
  viewport: { width: number; height: number };
  /** Rules of axe-core (default: all). Without any, only texts and the width are checked. */
  rules?: readonly string[];
}

const WIDE = { width: 1280, height: 800 };
const TABLET = { width: 768, height: 900 };
const NARROW = { width: 360, height: 800 };
const LIGHT: Look = { name: 'light', colorScheme: 'light', viewport: WIDE };
const DARK: Look = { name: 'dark at 360 px', colorScheme: 'dark', viewport: NARROW };
/** Only colors differ between the themes. */
const CONTRAST = ['color-contrast'];
/** Pages alternate between these looks, so that each look covers a third of them. The long form, `AXE_LOOKS=all`, uses all looks. */
const TURNS: readonly (readonly Look[])[] =
  process.env.AXE_LOOKS === 'all'
    ? [
        [
          LIGHT,
          DARK,
          { name: 'dark', colorScheme: 'dark', viewport: WIDE, rules: CONTRAST },
          { name: 'light at 360 px', colorScheme: 'light', viewport: NARROW, rules: CONTRAST },
          { name: 'light at 768 px', colorScheme: 'light', viewport: TABLET, rules: [] },
          {
            name: 'light at 1440 px',
            colorScheme: 'light',
            viewport: { width: 1440, height: 900 },
            rules: [],
          },
        ],
      ]
    : [[LIGHT], [DARK], [{ name: 'light at 768 px', colorScheme: 'light', viewport: TABLET }]];
const axe = await readFile(AXE, 'utf8');

const LONG =
  'a name that is much longer than any column has room for, in one word-that-cannot-be-broken-anywhere';
const service = await startService({
  workflows: {
    'default/people.yaml': `name: People of ${LONG}\nsource: { type: push }\n`,
    'default/shop.yaml': `source: { type: push }\nmode: upsert\nexpect: { fields: { price: { type: number } }, otherwise: quarantine }\n`,
    'default/failing.yaml': `source: { type: command, command: [sh, -c, 'echo "It went wrong" >&2; exit 1'] }\nretries: { max: 0 }\n`,
    'default/nameless.yaml': `source: { type: command, command: [printf, '{"name":1}\\n'] }\nretries: { max: 0 }\n`,
    'default/scheduled.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\nschedule: { cron: '0 6 * * *', timezone: Europe/Berlin }\n`,
  },
});
after(() => service.stop());
/** Pages of failed runs and webhooks, which contain messages of the service. */
let troubled: string[] = [];
const ids = await realIds();
const routes = await readFile(join(import.meta.dirname, '../../dashboard/src/routes.tsx'), 'utf8');
const paths = [
  ...pathsOf(routes, ids),
  ...(await ruledPaths()),
  ...(await peoplePaths()),
  ...(await shopPaths()),
];

const pageTest = signedInTests(() => service);

browserTest('the sign-in page has no accessibility violations', async ({ page }) => {
  await page.goto(`${service.url}/ui/`);
  await page.getByLabel('API key').waitFor();
  assert.deepEqual(await findingsOf(page, 'sign-in', [LIGHT, DARK]), []);
});

pageTest(
  'no page has accessibility violations, cuts off a time, or shows raw times or backticks',
  async ({ page, open }) => {
    const chooseTimes = async (name: string) => {
      await page.getByRole('button', { name: /^Times:/ }).click();
      await page.getByRole('menuitemradio', { name }).click();
      await page.keyboard.press('Escape');
    };
    await open('runs');
    await chooseTimes('UTC');
    const findings: string[] = [];
    for (const [at, path] of [...paths, ...troubled].entries()) {
      await open(path);
      await settled(page);
      assert.equal(await page.locator('h1').count(), 1, `${path} has one h1`);
      assert.match(await page.title(), /^.+ · Flowhook$/, `${path} has a title`);
      findings.push(...(await findingsOf(page, path, TURNS[at % TURNS.length] ?? [])));
    }
    await chooseTimes('3 min ago');
    for (const path of ['', 'webhooks', ...troubled]) {
      await open(path);
      await settled(page);
      findings.push(...(await textFindings(page)).map((line) => `${path} with relative times: ${line}`));
    }
    assert.deepEqual(findings, []);
  },
);

pageTest('no dialog or menu has accessibility violations', async ({ page, open }) => {
  const findings: string[] = [];
  let looks = 0;
  const look = async (name: string) => {
    findings.push(...(await findingsOf(page, name, TURNS[looks++ % TURNS.length] ?? [])));
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  };
  await open('webhooks');
  await page.getByRole('button', { name: 'New webhook' }).click();
  await page.getByRole('combobox', { name: 'Notify me when' }).click();
  await page.getByRole('option', { name: 'a number falls by' }).click();
  await page.getByText('Enter the name of a field').waitFor();
  await page.getByText('Complete or correct the rule').waitFor();
  findings.push(...(await lookedAt(page, 'an unfinished starting point')));
  await page.getByRole('textbox', { name: 'Filter' }).fill('chan');
  await page.getByRole('textbox', { name: 'Filter' }).press('Control+Space');
  await page.getByRole('option', { name: /^changed/ }).waitFor();
  await page.locator('mark').waitFor();
  findings.push(...(await lookedAt(page, 'suggestions of names')));
  await page.keyboard.press('Escape');
  await look('the new webhook dialog');
  for (const kind of ['Mail', 'Slack']) {
    await page.getByRole('button', { name: 'New webhook' }).click();
    await page.getByRole('radio', { name: kind }).click();
    await page.getByText('events would be sent').waitFor();
    await look(`a new webhook for ${kind}`);
  }
  await open('');
  await page.getByRole('button', { name: 'Tell me when something breaks' }).click();
  await look('the dialog for messages about failures');
  await open('workflows/people/feeds');
  await page.getByRole('button', { name: 'New feed' }).click();
  await look('the new feed dialog');
  await open('keys');
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByRole('dialog', { name: 'New key' }).waitFor();
  await look('the new key dialog');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await look('the shortcuts');
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Quick search' }).waitFor();
  await look('quick search');
  await page.setViewportSize(NARROW);
  await page.getByRole('button', { name: 'Pages', exact: true }).click();
  await page.getByRole('link', { name: 'Runs' }).waitFor();
  findings.push(...(await lookedAt(page, 'the navigation at 360 px')));
  assert.deepEqual(findings, []);
});

/** One line per violation. Restores the light theme and the wide window. */
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

/** Checks the page as it is, its texts, and that it needs no horizontal scrolling, which axe does not check. */
async function lookedAt(page: Page, name: string, rules?: readonly string[]): Promise<string[]> {
  const found = await textFindings(page);
  if (rules?.length !== 0) found.push(...(await violations(page, rules)));
  const isTooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
  return [...found, ...(isTooWide ? ['wider than the window'] : [])].map((line) => `${name}: ${line}`);
}

async function violations(page: Page, rules: readonly string[] | undefined): Promise<string[]> {
  const isLoaded = await page.evaluate(() => 'axe' in globalThis);
  if (!isLoaded) await page.evaluate(axe);
  // By default axe also describes every node that passes.
  const onlyFindings = { resultTypes: ['violations'] };
  const options = JSON.stringify(rules === undefined ? onlyFindings : { ...onlyFindings, runOnly: rules });
  return page.evaluate(
    `axe.run(${options}).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ': ' + failureSummary)))`,
  );
}

/** Waits until nothing is loading and the color scheme is applied. */
async function settled(page: Page, colorScheme: 'light' | 'dark' = 'light'): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
  const waiting = page.locator('#page :is(.mantine-Skeleton-root, .mantine-Loader-root)');
  await waiting.first().waitFor({ state: 'detached' });
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
}

/** The paths of all pages, parsed from the table of routes, with ids of real resources. */
function pathsOf(table: string, ids: Readonly<Record<string, string>>): string[] {
  const found = [...table.matchAll(/\b(at|tab)\('([^']+)'/g)].map(([, kind, path = '']) =>
    kind === 'tab' ? `/workflows/$workflowId${path}` : path,
  );
  assert.ok(found.length > 20, 'the table of routes was parsed');
  return [...found, '/no-such-page'].map((path) =>
    path
      .slice(1)
      .replaceAll(/\$(\w+)/g, (_, name: string) => ids[name] ?? assert.fail(`there is no ${name}`)),
  );
}

/** Creates one resource of each kind: changed records, a failed run, successful and failed deliveries. */
async function realIds(): Promise<Record<string, string>> {
  const flowhook = new Flowhook({ url: service.url, key: service.key });
  const inspector = await flowhook.inspectors.create();
  const { id: webhookId } = await flowhook.webhooks.create({ url: inspector.url, events: ['*'] });
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
  const eventId = event?.id ?? assert.fail('there is no event');
  const [delivery] = await flowhook.events.deliveries(eventId).take(1);
  return {
    workflowId: 'people',
    jobId,
    webhookId,
    eventId,
    inspectorId: inspector.id,
    deliveryId: delivery?.id ?? assert.fail('there is no delivery'),
  };
}

/** The pages of a webhook with a rule, and of an event that it did not send. */
async function ruledPaths(): Promise<string[]> {
  const flowhook = new Flowhook({ url: service.url, key: service.key });
  const { id } = await flowhook.webhooks.create({
    workflowId: 'people',
    url: 'http://127.0.0.1:9/ruled',
    events: ['workflow_data_change'],
    name: 'Born later',
    filter: 'risesBy(previous.born, record.born, 1) || record.name < 5',
    format: 'template',
    template: { name: `\${record.name}` },
    cooldown: '6h',
  });
  await flowhook.workflows.push('people', [{ id: '2', name: 'Grace Hopper', born: 1906 }]);
  let eventId = '';
  while (eventId === '')
    for (const decision of await flowhook.webhooks.decisions(id, { state: ['filtered'] }).take(1))
      eventId = decision.eventId;
  return [`webhooks/${id}?tab=rule`, `webhooks/${id}?tab=decisions`, `events/${eventId}`];
}

/** The pages of a webhook for a chat, with a digest, and of a delivery to it. */
async function peoplePaths(): Promise<string[]> {
  const flowhook = new Flowhook({ url: service.url, key: service.key });
  await flowhook.feeds.create('people', { title: LONG, filter: `record.name != "${LONG}"` });
  const { id } = await flowhook.webhooks.create({
    workflowId: 'people',
    url: 'http://127.0.0.1:9/chat',
    events: ['workflow_data_change'],
    format: 'slack',
    digest: { at: '08:00', timeZone: 'America/Argentina/ComodRivadavia' },
  });
  const { deliveryId } = await flowhook.webhooks.test(id);
  return [`webhooks/${id}?tab=rule`, `deliveries/${deliveryId}`];
}

/** The pages of a workflow with a range of changes, records in the quarantine, and findings. */
async function shopPaths(): Promise<string[]> {
  const flowhook = new Flowhook({ url: service.url, key: service.key });
  await flowhook.workflows.push('shop', [
    { id: LONG, price: 3 },
    { id: 'b', price: 4 },
  ]);
  await flowhook.workflows.push('shop', [
    { id: LONG, price: LONG },
    { id: 'b', price: 5 },
    { id: 'c', price: 6 },
  ]);
  const [job] = await flowhook.jobs.list({ workflowId: 'shop' }).take(1);
  return [
    'workflows/shop/changes?since=1&until=2&field=price',
    'workflows/shop/changes?record=b',
    'workflows/shop/quarantine',
    `workflows/shop/quarantine?record=${encodeURIComponent(LONG)}`,
    'workflows/shop/quality',
    `runs/${job?.id}`,
  ];
}

/** Creates a run whose error names a field, a paused webhook, and a webhook that backs off, with a waiting test event. */
async function troubles(flowhook: Flowhook): Promise<string[]> {
  const { jobId } = await flowhook.workflows.queue('nameless');
  await flowhook.jobs.wait(jobId);
  const events = ['workflow_failed'];
  const { id: paused } = await flowhook.webhooks.create({ url: 'http://127.0.0.1:9/paused', events });
  const reason = 'No delivery has succeeded for five days, since 2026-11-15T20:57:18.041Z. `Retry-After`: 60';
  await flowhook.webhooks.pause(paused, { reason });
  const { id: held } = await flowhook.webhooks.create({ url: 'http://127.0.0.1:9/held', events });
  for (let count = 0; count < 14; count += 1) await flowhook.webhooks.test(held);
  while ((await flowhook.webhooks.get(held)).breaker.state !== 'open') await flowhook.webhooks.get(held);
  const { deliveryId } = await flowhook.webhooks.test(held);
  return [`runs/${jobId}`, `webhooks/${paused}`, `webhooks/${held}`, `deliveries/${deliveryId}`];
}
