/** What the test files of a whole run share: a PostgreSQL, and the dashboard, which several would else build at once. */
import { built } from '../browser/built-pages.ts';
import { hasBrowser } from '../browser/chromium.ts';
import * as postgres from '../postgres.ts';

export async function globalSetup(): Promise<void> {
  await Promise.all([postgres.globalSetup(), hasBrowser && built()]);
}

export async function globalTeardown(): Promise<void> {
  await postgres.globalTeardown();
}
