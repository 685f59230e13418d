/** Administration in the dashboard: the audit log and the checks of the installation. */
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { signedInTests } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

describe('administration', () => {
  let service: TestService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());
  const pageTest = signedInTests(() => service);

  pageTest('shows sign-ins and new keys in the audit log, and filters it', async ({ page, open }) => {
    await open('keys');
    await page.getByRole('columnheader', { name: 'Last used' }).waitFor();
    await page.getByRole('row', { name: 'bootstrap' }).getByText('Never').first().waitFor();
    await service.call('POST', '/v1/keys', { name: 'reports', scopes: ['read'] });

    await page.getByRole('tab', { name: 'Audit' }).click();
    const line = (action: string) => page.getByRole('row').filter({ hasText: action });
    await line('sessions.begin').filter({ hasText: '127.0.0.1' }).first().waitFor();
    await line('keys.create').filter({ hasText: 'read without expiry' }).first().waitFor();
    await page.getByRole('searchbox', { name: 'Operation' }).fill('keys.create');
    await line('sessions.begin').first().waitFor({ state: 'detached' });
    await line('keys.create').first().waitFor();
    assert.match(page.url(), /\/ui\/keys\/audit\?action=keys\.create$/);
  });

  pageTest(
    'shows findings with a fix, and all other checks on request, on a small screen',
    async ({ page, open }) => {
      const data = join(service.directory, 'data');
      chmodSync(data, 0o755);
      await page.setViewportSize({ width: 360, height: 740 });
      await open('system');
      const checks = page.getByRole('region', { name: 'Checks' });
      const found = checks
        .getByRole('list', { name: 'Needs attention' })
        .getByRole('listitem')
        .filter({ hasText: 'Data directory' });
      await found.getByText('Warning').waitFor();
      assert.match(await found.innerText(), new RegExp(`Fix: chmod 700 ${data}`));
      assert.equal(await checks.getByText('Versions').count(), 0);
      await checks.getByRole('button', { name: 'Show all checks' }).click();
      await checks.getByRole('list', { name: 'All other checks' }).getByText('Versions').waitFor();
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
    },
  );
});
