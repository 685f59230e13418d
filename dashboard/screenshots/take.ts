/**
 * `npm run screenshots`: pictures of every page of the dashboard in `docs/images`, in both themes, and of some pages at the
 * width of a phone; and of messages to people. `--only NAME,…` takes those of some pages, or `messages`.
 * The people in them are fictional.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { BackgroundBuild } from '../../src/http/ui/background-build.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { startChromium } from '../../test/support/browser/chromium.ts';
import { takeMessages } from './messages.ts';
import { smallPng } from './small-png.ts';
import { startWorld, type World } from './world.ts';

const ROOT = join(import.meta.dirname, '../..');
const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 740 };
const NARROW_PAGES = ['overview', 'workflow-data', 'run'];
const PATIENCE_MS = 30_000;

const { values } = parseArgs({
  options: { out: { type: 'string', default: join(ROOT, 'docs/images') }, only: { type: 'string' } },
});

const only = values.only?.split(',');
const isWanted = (name: string) => only === undefined || only.includes(name);

async function removePictures(directory: string): Promise<void> {
  const names = await readdir(directory);
  await Promise.all(names.filter((name) => name.endsWith('.png')).map((name) => rm(join(directory, name))));
}

function pagesOf({ shown }: World): Record<string, string> {
  return {
    welcome: 'welcome',
    workflows: 'workflows',
    'workflow-data': 'workflows/crm-contacts/data',
    'workflow-runs': 'workflows/site-people/runs',
    'workflow-changes': 'workflows/crm-contacts/changes',
    'workflow-record': 'workflows/crm-contacts/changes?record=c-1005',
    'workflow-quality': 'workflows/crm-contacts/quality',
    'workflow-quarantine': 'workflows/crm-contacts/quarantine',
    'workflow-webhooks': 'workflows/crm-contacts/webhooks',
    'workflow-feeds': 'workflows/crm-contacts/feeds',
    'workflow-definition': 'workflows/site-people/definition',
    'workflow-api': 'workflows/crm-contacts/api',
    runs: 'runs',
    run: `runs/${shown.failed}`,
    'run-finished': `runs/${shown.finished}`,
    webhooks: 'webhooks',
    webhook: `webhooks/${shown.webhook}`,
    'webhook-rule': `webhooks/${shown.filtered}?tab=rule`,
    'webhook-message': `webhooks/${shown.chat}?tab=rule`,
    'webhook-decisions': `webhooks/${shown.filtered}?tab=decisions`,
    'webhook-health': `webhooks/${shown.webhook}?tab=health`,
    delivery: `deliveries/${shown.delivery}`,
    inspectors: 'inspector',
    inspector: `inspector/${shown.inspector}`,
    events: 'events',
    event: `events/${shown.event}`,
    'event-catalog': 'events/catalog',
    keys: 'keys',
    system: 'system',
    // Last, because the counts in its charts lag behind by a few seconds.
    overview: '',
  };
}

const environment = new Map([['PATH', process.env.PATH ?? '']]);
if (values.only !== 'messages')
  await new BackgroundBuild({ root: ROOT, log: silentLogger, environment }).start();
const browser = await startChromium();
let world: World | undefined;
try {
  await mkdir(values.out, { recursive: true });
  // Also removes pictures of former pages.
  if (values.only === undefined) await removePictures(values.out);
  let bytes = 0;
  if (isWanted('messages')) {
    await takeMessages(browser, async (name, screenshot) => {
      const picture = smallPng(screenshot);
      await writeFile(join(values.out, `${name}.png`), picture);
      bytes += picture.length;
    });
  }
  if (values.only !== 'messages') {
    world = await startWorld();
    for (const colorScheme of ['light', 'dark'] as const)
      for (const viewport of [WIDE, NARROW]) bytes += await take(browser, world, { colorScheme, viewport });
  }
  process.stdout.write(`${Math.round(bytes / 1_000)} kB of pictures in ${values.out}\n`);
} finally {
  await browser.close();
  await world?.stop();
}

async function take(
  browser: Browser,
  world: World,
  look: { colorScheme: 'light' | 'dark'; viewport: typeof WIDE },
): Promise<number> {
  const isNarrow = look.viewport === NARROW;
  const ending = `${isNarrow ? '-narrow' : ''}-${look.colorScheme}.png`;
  const context = await browser.newContext({ ...look, reducedMotion: 'reduce', locale: 'en-GB' });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  let bytes = 0;
  const shoot = async (name: string) => {
    const picture = smallPng(await page.screenshot({ animations: 'disabled', caret: 'hide' }));
    await writeFile(join(values.out, `${name}${ending}`), picture);
    bytes += picture.length;
  };
  await page.goto(`${world.url}/ui/`);
  await page.getByLabel('API key', { exact: true }).waitFor();
  if (!isNarrow && isWanted('sign-in')) await shoot('sign-in');
  await page.getByLabel('API key', { exact: true }).fill(world.key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor();
  for (const [name, path] of Object.entries(pagesOf(world))) {
    if (isNarrow && !NARROW_PAGES.includes(name)) continue;
    if (!isWanted(name)) continue;
    await page.goto(`${world.url}/ui/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor();
    // Waits for loaders instead of the network, because the event stream never ends.
    await page
      .locator('[aria-label="Loading"], .mantine-Skeleton-root')
      .first()
      .waitFor({ state: 'detached' });
    await page.evaluate('document.activeElement.blur(); document.fonts.ready');
    await shoot(name);
  }
  await context.close();
  return bytes;
}
