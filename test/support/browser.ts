/** A real Chromium that looks at the dashboard. What a page should never do fails the test that it did it in. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { built } from './built-pages.ts';
import { BROWSER_VARIABLE, hasBrowser, startChromium } from './chromium.ts';
import type { TestService } from './service.ts';

let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

/** How long a page may take to become as it should be, in milliseconds: many times as long as it does. */
const PATIENCE_MS = 60_000;

export interface Visit {
  page: Page;
  t: TestContext;
}

/** A case in a page of its own, without a session. */
export function browserTest(
  name: string,
  run: (visit: Visit) => Promise<void>,
  options: BrowserContextOptions = {},
): void {
  const skip =
    !hasBrowser && `no browser is installed: apt-get install chromium, or name one in ${BROWSER_VARIABLE}`;
  test(name, { skip }, async (t) => {
    await built();
    browser ??= startChromium();
    const context = await (await browser).newContext({ viewport: { width: 1280, height: 800 }, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const problems = await watch(page);
    try {
      await run({ page, t });
    } catch (error) {
      // What the page looked like says more than that something was not there.
      if (process.env.TEST_SCREENSHOTS !== undefined) {
        await page.screenshot({
          path: join(process.env.TEST_SCREENSHOTS, `${name.replaceAll(/\W+/g, '-')}.png`),
        });
      }
      throw problems.length === 0 ? error : new Error(`${(error as Error).message}\n${problems.join('\n')}`);
    } finally {
      await context.close();
    }
    if (problems.length > 0) throw new Error(problems.join('\n'));
  });
}

/** Signs in with a key, by the form. */
export async function signIn(
  page: Page,
  { url, key }: Pick<TestService, 'url' | 'key'>,
  path = '',
): Promise<void> {
  await page.goto(`${url}/ui/${path}`);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation').first().waitFor();
}

/** The text of the library that finds what keeps people out. */
export const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Runs in the page: what the policy forbids becomes an error of the console. */
const TELL_OF_POLICY = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('The policy forbids ' + event.violatedDirective + ': ' + event.blockedURI + ' ' + event.sourceFile))`;

/** What a page does that it never should: errors, what the policy forbids, requests to anybody else. */
async function watch(page: Page): Promise<string[]> {
  const problems: string[] = [];
  await page.addInitScript(TELL_OF_POLICY);
  page.on('console', (message) => {
    if (message.type() !== 'error') return;
    // The browser says so of every refusal, which pages show in their own way.
    if (message.text().startsWith('Failed to load resource')) return;
    problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`error: ${error.stack ?? error.message}`));
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') problems.push(`asked ${request.url()}`);
  });
  return problems;
}
