/** Records in the dashboard: searching, sorting, viewing and exporting them, always as text. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe } from 'node:test';
import type { Download, Page } from 'playwright-core';
import { signedInTests } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

const MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
const push = 'source: { type: push }\n';

describe('records', () => {
  let service: TestService;
  before(async () => {
    service = await startService({
      workflows: { 'default/people.yaml': push, 'default/many.yaml': push, 'default/hostile.yaml': push },
    });
    await send('people', [
      { id: 'ada', name: 'Ada Lovelace', born: 1815 },
      { id: 'grace', name: 'Grace Hopper', born: 1906 },
      { id: 'emmy', name: 'Emmy Noether', born: 1882 },
    ]);
  });
  after(() => service.stop());
  const pageTest = signedInTests(() => service);

  async function send(workflow: string, records: object[]): Promise<void> {
    const { status, body } = await service.call('POST', `/v1/workflows/${workflow}/push`, records);
    assert.ok(status < 300, JSON.stringify(body));
  }

  const rowNames = (page: Page) => page.locator('tbody tr td:first-child').allInnerTexts();

  pageTest('searches, sorts and opens records', async ({ page, open }) => {
    await open('workflows/people');
    await page.getByRole('row', { name: 'Emmy Noether' }).waitFor();
    await page.getByRole('button', { name: 'born' }).click();
    await page.getByText('Sorted by born').waitFor();
    assert.deepEqual(await rowNames(page), ['ada', 'emmy', 'grace']);

    await page.getByRole('searchbox', { name: 'Search records' }).fill('hopper');
    await page.getByRole('row', { name: 'Ada Lovelace' }).waitFor({ state: 'detached' });
    assert.match(page.url(), /[?&]q=hopper/);
    await page.getByRole('button', { name: 'grace' }).click();
    const record = page.getByRole('dialog', { name: 'Record grace' });
    await record.getByText('1906').waitFor();
    await page.keyboard.press('Escape');
    await record.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Clear' }).first().click();
    await page.getByRole('row', { name: 'Ada Lovelace' }).waitFor();
  });

  pageTest('exports records as CSV and as JSON', async ({ page, open }) => {
    await open('workflows/people/data');
    await page.getByRole('row', { name: 'Emmy Noether' }).waitFor();
    const csv = await exported(page, /^CSV/);
    assert.match(csv.suggestedFilename(), /^people-v\d+\.csv$/);
    assert.match(await readFile(await csv.path(), 'utf8'), /^id,name,born\r?\nada,Ada Lovelace,1815\r?\n/);
    const json = await exported(page, /^JSON/);
    const records = JSON.parse(await readFile(await json.path(), 'utf8')) as { id: string }[];
    assert.deepEqual(
      records.map(({ id }) => id),
      ['ada', 'grace', 'emmy'],
    );
  });

  async function exported(page: Page, format: RegExp): Promise<Download> {
    await page.getByRole('button', { name: 'Export' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: format }).click(),
    ]);
    return download;
  }

  pageTest('renders only visible records, and loads more on scrolling', async ({ page, open }) => {
    await send(
      'many',
      Array.from({ length: 1_000 }, (_, n) => ({ id: String(n).padStart(4, '0'), name: `Person ${n}` })),
    );
    await open('workflows/many/data');
    await page.getByText('of 1,000 records').waitFor();
    assert.ok((await page.locator('tbody tr').count()) < 100);
    const box = page.locator('[data-scrolls]');
    const loaded = page.getByText(/of 1,000 records/);
    while ((await loaded.count()) > 0) {
      const text = await loaded.innerText();
      await box.evaluate((element) => element.scrollTo({ top: element.scrollHeight }));
      await page.getByText(text, { exact: true }).waitFor({ state: 'detached' });
    }
    await box.evaluate((element) => element.scrollTo({ top: element.scrollHeight }));
    await page.getByRole('button', { name: '0999', exact: true }).waitFor();
    assert.ok((await page.locator('tbody tr').count()) < 100);
  });

  pageTest('renders markup in records as text', async ({ page, open }) => {
    await send('hostile', [{ id: MARKUP, [MARKUP]: MARKUP, link: 'javascript:document.title=3' }]);
    await open('workflows/hostile/data');
    await page.getByRole('columnheader', { name: MARKUP }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'javascript' }).count(), 0);
    await page.locator('tbody').getByRole('button', { name: MARKUP }).click();
    await page.getByRole('dialog').getByText(MARKUP).first().waitFor();
    assert.equal(await page.locator('#page img, [role=dialog] img, body script').count(), 0);
    await open('workflows/hostile/changes');
    await page.getByText(MARKUP).first().waitFor();
    assert.match(await page.title(), /hostile/);
  });
});
