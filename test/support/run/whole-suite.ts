/** Global setup of `npm test`: starts a shared PostgreSQL, and builds the dashboard once for all files. */
import { built } from '../browser/built-pages.ts';
import { hasBrowser } from '../browser/chromium.ts';
import * as postgres from '../postgres.ts';

export async function globalSetup(): Promise<void> {
  await Promise.all([postgres.globalSetup(), hasBrowser && built()]);
}

export async function globalTeardown(): Promise<void> {
  await postgres.globalTeardown();
}
