/** Finds and starts the browser for tests of the dashboard. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** The variable with the path of a browser. */
export const BROWSER_VARIABLE = 'FLOWHOOK_TEST_BROWSER';
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** No updates and no network requests other than the test's. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  // Containers have little shared memory.
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const executablePath = [process.env[BROWSER_VARIABLE], ...PLACES].find(
  (place) => place !== undefined && place !== '' && existsSync(place),
);

export const hasBrowser = executablePath !== undefined;

/** @throws Error if no browser is installed */
export function startChromium(): Promise<Browser> {
  if (executablePath === undefined) {
    throw new Error(`No browser is installed: apt-get install chromium, or name one in ${BROWSER_VARIABLE}`);
  }
  return chromium.launch({ executablePath, args: FLAGS });
}
