/** The audit in the dashboard, and when keys were used. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { browserTest, signIn } from './support/browser.ts';
import { startService } from './support/service.ts';

const service = await startService();
after(() => service.stop());

browserTest('who has signed in and made a key stands in the audit, and is found there', async ({ page }) => {
  await signIn(page, service, 'keys');
  await page.getByRole('columnheader', { name: 'Last used' }).waitFor();
  await page.getByRole('row', { name: 'bootstrap' }).getByText('never').first().waitFor();
  await service.call('POST', '/v1/keys', { name: 'reports', scopes: ['read'] });

  await page.getByRole('tab', { name: 'Audit' }).click();
  const line = (action: string) => page.getByRole('row').filter({ hasText: action });
  await line('sessions.begin').filter({ hasText: '127.0.0.1' }).first().waitFor();
  await line('keys.create').filter({ hasText: 'read for good' }).first().waitFor();
  await page.getByRole('searchbox', { name: 'Operation' }).fill('keys.create');
  await line('sessions.begin').first().waitFor({ state: 'detached' });
  await line('keys.create').first().waitFor();
  assert.match(page.url(), /\/ui\/keys\/audit\?action=keys\.create$/);
});
