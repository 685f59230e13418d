/** What those who run the service look at in the dashboard: the audit, and what is wrong with the installation. */
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

  pageTest(
    'who has signed in and made a key stands in the audit, and is found there',
    async ({ page, open }) => {
      await open('keys');
      await page.getByRole('columnheader', { name: 'Last used' }).waitFor();
      await page.getByRole('row', { name: 'bootstrap' }).getByText('never').first().waitFor();
      await service.call('POST', '/v1/keys', { name: 'reports', scopes: ['read'] });

      await page.getByRole('tab', { name: 'Audit' }).click();
      const line = (action: string) => page.getByRole('row').filter({ hasText: action });
      await line('sessions.begin').filter({ hasText: '127.0.0.1' }).first().waitFor();
      await line('keys.create').filter({ hasText: 'read without expiry' }).first().waitFor();
      await page.getByRole('searchbox', { name: 'Operation' }).fill('keys.create');
      await line('sessions.begin').first().waitFor({ state: 'detached' });
      await line('keys.create').first().waitFor();
      assert.match(page.url(), /\/ui\/keys\/audit\?action=keys\.create$/);
    },
  );

  pageTest(
    'what needs attention is shown with what to do, and all else when it is asked for, on a small screen',
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
      await found.getByText('warning').waitFor();
      assert.match(await found.innerText(), new RegExp(`What to do: chmod 700 ${data}`));
      assert.equal(await checks.getByText('Versions').count(), 0);
      await checks.getByRole('button', { name: 'Show all checks' }).click();
      await checks.getByRole('list', { name: 'All other checks' }).getByText('Versions').waitFor();
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
    },
  );
});
