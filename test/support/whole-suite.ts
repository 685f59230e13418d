/** What the test files of a whole run share: a PostgreSQL, and the dashboard, which several would else build at once. */
import { built } from './built-pages.ts';
import { hasBrowser } from './chromium.ts';
import { globalSetup as startPostgres } from './postgres.ts';

export { globalTeardown } from './postgres.ts';

export async function globalSetup(): Promise<void> {
  await Promise.all([startPostgres(), hasBrowser && built()]);
}
