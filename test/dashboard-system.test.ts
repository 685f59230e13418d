/** The system page in a browser: what is wrong with the installation comes first, the rest is there on request. */
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { browserTest, signIn } from './support/browser.ts';
import { startService } from './support/service.ts';

const service = await startService();
after(() => service.stop());

browserTest(
  'what needs attention is shown with what to do, and all else when it is asked for, on a small screen',
  async ({ page }) => {
    const data = join(service.directory, 'data');
    chmodSync(data, 0o755);
    await signIn(page, service, 'system');
    await page.setViewportSize({ width: 360, height: 740 });
    const checks = page.getByRole('region', { name: 'Checks' });
    const open = checks
      .getByRole('list', { name: 'Needs attention' })
      .getByRole('listitem')
      .filter({ hasText: 'Data directory' });
    await open.getByText('warning').waitFor();
    assert.match(await open.innerText(), new RegExp(`What to do: chmod 700 ${data}`));
    assert.equal(await checks.getByText('Versions').count(), 0);
    await checks.getByRole('button', { name: 'Show all checks' }).click();
    await checks.getByRole('list', { name: 'All other checks' }).getByText('Versions').waitFor();
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  },
);
