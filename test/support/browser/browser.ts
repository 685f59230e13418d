/** Drives the dashboard in a real Chromium. Errors and violations of its policy fail the test. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { TestService } from '../service.ts';
import { built } from './built-pages.ts';
import { BROWSER_VARIABLE, hasBrowser, startChromium } from './chromium.ts';

/** One browser for all cases of a process. */
let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

/** How long to wait for a page: much longer than it usually takes. */
const PATIENCE_MS = 60_000;
const WIDE = { width: 1280, height: 800 };
const SKIP =
  !hasBrowser && `no browser is installed: apt-get install chromium, or name one in ${BROWSER_VARIABLE}`;

/** A service, and the key to sign in with. */
export type Signed = Pick<TestService, 'url' | 'key'>;

export interface Visit {
  page: Page;
  t: TestContext;
}

export interface SignedInVisit extends Visit {
  /** Goes to a page of the dashboard, such as `runs?state=failed`. */
  open: (path: string) => Promise<void>;
}

/** A tab, and the problems of its page. */
interface Tab {
  page: Page;
  context: BrowserContext;
  problems: string[];
}

/** A case in its own browser context, without a session. */
export function browserTest(name: string, run: (visit: Visit) => Promise<void>): void {
  test(name, { skip: SKIP }, async (t) => {
    const tab = await newTab();
    try {
      await observed(tab, name, () => run({ page: tab.page, t }));
    } finally {
      await tab.context.close();
    }
  });
}

/**
 * Cases that are signed in to a service with its key, and share one tab, because a context, a sign-in and loading all
 * scripts take as long as most cases. After a failed case the next one gets a new tab.
 */
export function signedInTests(
  serviceOf: () => Signed | Promise<Signed>,
): (name: string, run: (visit: SignedInVisit) => Promise<void>) => void {
  let tab: Tab | undefined;
  let isLoaded = false;
  // The tab is closed with its suite, because a tab whose service has stopped would try to reconnect all the time.
  after(() => tab?.context.close());
  return (name, run) =>
    void test(name, { skip: SKIP }, async (t) => {
      const service = await serviceOf();
      tab ??= await newTab();
      const { page, context } = tab;
      const open = async (path: string) => {
        const address = `/ui/${path}`;
        // Navigates like a link within the dashboard, without loading everything again.
        if (isLoaded) await page.evaluate(`__TSR_ROUTER__.navigate({ href: ${JSON.stringify(address)} })`);
        else {
          await beginSession(page, service);
          await page.goto(service.url + address);
          isLoaded = true;
        }
      };
      try {
        await observed(tab, name, () => run({ page, t, open }));
        await page.setViewportSize(WIDE);
      } catch (error) {
        await context.close();
        tab = undefined;
        isLoaded = false;
        throw error;
      }
    });
}

/** Signs in with a key, using the form. */
export async function signIn(page: Page, { url, key }: Signed, path = ''): Promise<void> {
  await page.goto(`${url}/ui/${path}`);
  await page.getByLabel('API key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation').first().waitFor();
}

/** Signs in with a key without the form, and replaces the current session. */
export async function beginSession(page: Page, { url, key }: Signed): Promise<void> {
  const response = await page.context().request.post(`${url}/ui/api/session`, {
    headers: { origin: url },
    data: { key },
  });
  if (!response.ok()) throw new Error(`The sign-in returned ${response.status()}: ${await response.text()}`);
}

/** The path of axe-core, which finds accessibility problems. */
export const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

async function newTab(): Promise<Tab> {
  await built();
  browser ??= startChromium();
  const context = await (await browser).newContext({
    viewport: WIDE,
    // Disables animations.
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  return { page, context, problems: await watch(page) };
}

/** Fails if the page had problems, even if the case itself has passed. */
async function observed({ page, problems }: Tab, name: string, run: () => Promise<void>): Promise<void> {
  problems.length = 0;
  try {
    await run();
  } catch (error) {
    // Takes a screenshot of the failure.
    if (process.env.TEST_SCREENSHOTS !== undefined) {
      const file = `${name.replaceAll(/\W+/g, '-')}.png`;
      await page.screenshot({ path: join(process.env.TEST_SCREENSHOTS, file) });
    }
    throw problems.length === 0 ? error : new Error(`${(error as Error).message}\n${problems.join('\n')}`);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
}

/** Runs in the page: logs violations of the policy as errors. */
const LOG_VIOLATIONS = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('The policy forbids ' + event.violatedDirective + ': ' + event.blockedURI + ' ' + event.sourceFile))`;

/** Collects what a page must never do: errors, violations of the policy, requests to other hosts. */
async function watch(page: Page): Promise<string[]> {
  const problems: string[] = [];
  await page.addInitScript(LOG_VIOLATIONS);
  page.on('console', (message) => {
    if (message.type() !== 'error') return;
    // The browser logs every error response. Pages show these themselves.
    if (message.text().startsWith('Failed to load resource')) return;
    problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`error: ${error.stack ?? error.message}`));
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') problems.push(`request to ${request.url()}`);
  });
  return problems;
}
