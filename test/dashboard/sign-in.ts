/** Signing in to the dashboard with a key or a link, and the end of sessions. */
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { makeLink } from '../../src/teams/sessions.ts';
import { beginSession, browserTest, signIn } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

describe('signing in', () => {
  let service: TestService;
  /** Printed by the first start. */
  let key: string;
  before(async () => {
    service = await startService({ settings: { FLOWHOOK_BOOTSTRAP_KEY: '' } });
    key = service.firstKey ?? assert.fail('there is no first key');
  });
  after(() => service.stop());

  async function keyWith(scopes: Scope[]) {
    const team = await service.store.teams.bySlug({ slug: 'default' });
    return mintKey(service.store, { teamId: team?.id ?? '', name: 'short', scopes, expiresAt: null });
  }

  browserTest(
    'a link signs in once, even in a tab that shows the dashboard, and disappears from the URL',
    async ({ page }) => {
      const link = service.dashboard ?? assert.fail('there is no link');
      await page.goto(link);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      assert.equal(page.url(), `${service.url}/ui/`);
      await page.context().clearCookies();
      await page.goto(`${service.url}/docs`);
      await page.goto(link);
      await page.getByText('The sign-in link did not work').waitFor();

      const made = await keyWith(['read']);
      const other = await makeLink(service.store, { keyId: made.record.id });
      await page.goto(`${service.url}/ui/#/welcome/${other?.token}`);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      assert.equal(page.url(), `${service.url}/ui/`);
    },
  );

  browserTest('signs in with a key, rejects a wrong one, and signs out', async ({ page }) => {
    await page.goto(`${service.url}/ui/runs`);
    await page.getByLabel('API key', { exact: true }).waitFor();
    // The field has the focus.
    await page.keyboard.type('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('API key', { exact: true }).fill(key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
    assert.ok(!stored.includes(key), 'the key is not stored');
    await page.reload();
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    await page.getByRole('button', { name: /account|signed in/i }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('API key', { exact: true }).waitFor();
  });

  browserTest(
    'a session ends immediately with its key, and the next one continues on the same page',
    async ({ page }) => {
      const made = await keyWith(['read']);
      await beginSession(page, { url: service.url, key: made.key });
      await page.goto(`${service.url}/ui/runs`);
      await page.getByRole('link', { name: 'Workflows' }).click();
      await page.getByRole('heading', { name: 'Workflows' }).waitFor();
      await service.store.keys.revoke({ id: made.record.id });
      // Without any action of the user.
      await page.getByText('Your session has ended').waitFor();
      await page.getByLabel('API key', { exact: true }).fill(key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Workflows' }).waitFor();
    },
  );

  browserTest('a paused tab shows the session that another tab has started', async ({ page }) => {
    const made = await keyWith(['webhooks']);
    await beginSession(page, { url: service.url, key });
    await page.goto(`${service.url}/ui/runs`);
    const runs = page.getByRole('link', { name: 'Runs', exact: true });
    await runs.waitFor();
    await page.getByRole('button', { name: 'Live' }).click();
    // All tabs share the cookie.
    await beginSession(page, { url: service.url, key: made.key });
    await page.getByRole('button', { name: 'Paused' }).click();
    await page.getByText('Your key cannot see runs').waitFor();
    assert.equal(await runs.count(), 0);
  });

  browserTest('creates a key that signs in, and ends its session by revoking it', async ({ page }) => {
    await beginSession(page, { url: service.url, key });
    await page.goto(`${service.url}/ui/keys`);
    await page.getByRole('button', { name: 'New key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('second');
    await dialog.getByLabel('admin').check();
    await dialog.getByRole('button', { name: 'Create key' }).click();
    const shown = await page
      .getByRole('dialog', { name: 'Your new key: second' })
      .getByText(/^fh_/)
      .innerText();
    await page.getByRole('button', { name: 'I saved the key' }).click();
    await page.getByRole('row', { name: 'second' }).getByText('Active').waitFor();
    assert.ok(!(await page.content()).includes(shown), 'the key is shown only once');

    await page.context().clearCookies();
    await signIn(page, { url: service.url, key: shown }, 'keys');
    await page.getByRole('button', { name: 'Revoke second' }).click();
    await page.getByRole('dialog').getByText('Your session ends immediately').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
    await page.getByLabel('API key', { exact: true }).waitFor();
    await page.getByLabel('API key', { exact: true }).fill(shown);
    await page.keyboard.press('Enter');
    await page.getByRole('main').getByRole('alert').waitFor();
  });
});
