/** What changed since a day, a record's history, and the quarantine in the dashboard. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe } from 'node:test';
import { Flowhook } from '../../client/src/flowhook-client.ts';
import { signedInTests } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

const SHOP = `source: { type: push }
mode: upsert
expect:
  fields:
    price: { type: number, min: 0 }
  otherwise: quarantine
`;

describe('history', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ workflows: { 'default/shop.yaml': SHOP } });
    const flowhook = new Flowhook({ url: service.url, key: service.key });
    await flowhook.workflows.push('shop', [
      { id: 'lamp', price: 30, stock: 4 },
      { id: 'chair', price: 80, stock: 2 },
    ]);
    await flowhook.workflows.push('shop', [{ id: 'lamp', price: 30, stock: 3 }]);
    await flowhook.workflows.push('shop', [
      { id: 'lamp', price: 25, stock: 3 },
      { id: 'chair', price: -1, stock: 2 },
      { id: 'table', price: 'ask us', stock: 1 },
      { id: 'shelf', price: 60, stock: 1 },
      { id: 'desk', price: 90, stock: 1 },
    ]);
  });
  after(() => service.stop());
  const pageTest = signedInTests(() => service);

  pageTest(
    'three clicks from the list show what changed since a day, only prices',
    async ({ page, open }) => {
      await open('workflows');
      await page.getByRole('link', { name: 'Changes of shop' }).click();
      await page.getByRole('radio', { name: 'Yesterday' }).check({ force: true });
      await page.getByRole('checkbox', { name: 'price' }).check({ force: true });
      const changes = page.getByRole('region', { name: 'Changes in this range' });
      await changes.getByText('4 changes').waitFor();
      assert.match(page.url(), /since=\d{4}-\d\d-\d\dT.*field=price/);
      assert.equal(await changes.locator('dt', { hasText: 'stock' }).count(), 0);
      const link = page.url();
      await page.goto(link);
      await changes.getByText('4 changes').waitFor();
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Download CSV' }).click(),
      ]);
      assert.match(
        await readFile(await download.path(), 'utf8'),
        /^type,id,version,field,value,previousValue\r?\n/,
      );
    },
  );

  pageTest('any two kept versions are compared', async ({ page, open }) => {
    await open('workflows/shop/changes?since=1&until=2');
    await page.getByRole('heading', { name: 'From version 1 to 2' }).waitFor();
    await page.getByText('1 change', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Between…' }).click();
    await page.getByRole('combobox', { name: 'To version' }).click();
    await page.getByRole('option', { name: /^Version 3,/ }).click();
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('heading', { name: 'From version 1 to 3' }).waitFor();
    await page.getByText('3 changes').waitFor();
    assert.match(page.url(), /since=1&until=3/);
  });

  pageTest('a record shows what each version did with it', async ({ page, open }) => {
    await open('workflows/shop/data');
    await page.getByRole('button', { name: 'lamp', exact: true }).click();
    const record = page.getByRole('dialog', { name: 'Record lamp' });
    await record.getByRole('tab', { name: 'History' }).click();
    await record.getByRole('link', { name: 'Version 3' }).waitFor();
    assert.deepEqual(await record.getByRole('link', { name: /^Version/ }).allInnerTexts(), [
      'Version 3',
      'Version 2',
      'Version 1',
    ]);
    assert.match(page.url(), /record=lamp&show=history/);
    await open('workflows/shop/changes?record=lamp');
    await record.getByText('+ Added').waitFor();
    await record.getByRole('tab', { name: 'Fields' }).click();
    await record.getByText('25').waitFor();
    await page.keyboard.press('Escape');
    await record.waitFor({ state: 'detached' });
  });

  pageTest('records in the quarantine are compared, accepted and dropped', async ({ page, open }) => {
    await open('workflows/shop/quarantine');
    await page.getByText('2 records', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'chair', exact: true }).click();
    const record = page.getByRole('dialog', { name: 'Record chair in the quarantine' });
    await record.getByRole('region', { name: 'Published' }).getByText('80').waitFor();
    await page.keyboard.press('Escape');
    await record.waitFor({ state: 'detached' });
    await page.getByRole('checkbox', { name: 'Select chair' }).check();
    await page.getByRole('button', { name: 'Drop selected' }).click();
    await page.getByRole('button', { name: 'Drop 1 record' }).click();
    await page.getByRole('button', { name: 'chair', exact: true }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Accept all' }).click();
    await page.getByRole('button', { name: 'Accept 1 record' }).click();
    await page.getByText('The quarantine is empty').waitFor();
    const [table] = (await service.call('GET', '/v1/workflows/shop/data?q=ask')).body as { price: string }[];
    assert.equal(table?.price, 'ask us');
  });
});
