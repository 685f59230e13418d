/** What changed since a day, a record's history, and the quarantine in the dashboard. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe } from 'node:test';
import { Flowhook } from '../../client/src/flowhook-client.ts';
import { parseYamlDefinition } from '../../src/definitions/definition.ts';
import { freshnessChecking } from '../../src/jobs/freshness.ts';
import { silentLogger } from '../../src/observe/log.ts';
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
  let aheadMs = 0;
  before(async () => {
    service = await startService({
      clock: () => Date.now() + aheadMs,
      workflows: {
        'default/shop.yaml': SHOP,
        'default/filed.yaml': 'source: { type: push }\n',
        'default/awaited.yaml': 'source: { type: push }\nexpect: { fresh: 30m }\n',
      },
    });
    const flowhook = new Flowhook({ url: service.url, key: service.key });
    await flowhook.workflows.push(
      'filed',
      Array.from({ length: 40 }, (_, n) => ({ id: String(n), price: 10 + n })),
    );
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
    'three clicks from the overview show what changed since a day, only prices',
    async ({ page, open }) => {
      await open('');
      const runs = page.getByRole('region', { name: 'Latest runs' });
      await runs
        .getByRole('row', { name: /shop.*added/ })
        .getByRole('link', { name: 'added' })
        .first()
        .click();
      await page.getByText('Yesterday', { exact: true }).click();
      await page
        .getByRole('group', { name: 'Only these fields' })
        .getByText('price', { exact: true })
        .click();
      const changes = page.getByRole('region', { name: 'Changes in this range' });
      await changes.getByText('4 changes').waitFor();
      assert.match(page.url(), /since=\d{4}-\d\d-\d\dT.*field=price/);
      assert.equal(await changes.locator('dt', { hasText: 'stock' }).count(), 0);
      const link = page.url();
      await open('workflows');
      await page.getByRole('link', { name: '3 versions of shop' }).waitFor();
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

  pageTest('what is set aside behind a dialog is not accepted with the rest', async ({ page, open }) => {
    const flowhook = new Flowhook({ url: service.url, key: service.key });
    await flowhook.workflows.put('late', {
      source: { type: 'push' },
      mode: 'upsert',
      expect: { fields: { price: { type: 'number' } }, otherwise: 'quarantine' },
    });
    const lamp = { id: 'lamp', price: 30 };
    await flowhook.workflows.push('late', [lamp, { id: 'seen', price: 'ask us' }]);
    await open('workflows/late/quarantine');
    await page.getByText('1 record', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Accept all' }).click();
    // Nothing else changes, so that no version is published.
    await flowhook.workflows.push('late', [lamp, { id: 'unseen', price: 'ask us' }]);
    await page.getByText('2 records', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Accept 1 record' }).click();
    await page.getByText('1 record', { exact: true }).waitFor();
    const left = await flowhook.quarantine.list('late').take(9);
    assert.deepEqual(
      left.map(({ id }) => id),
      ['unseen'],
    );
    await page.getByRole('button', { name: 'unseen' }).click();
    await page.getByRole('button', { name: 'Drop record' }).click();
    await page.getByRole('button', { name: 'Drop this record' }).click();
    await page.getByText('The quarantine is empty').waitFor();
    await open('workflows/late/quarantine?record=unseen');
    await page.getByText('This record is no longer in the quarantine').waitFor();
    await page.keyboard.press('Escape');
  });

  pageTest('an expectation is made of what a field looks like', async ({ page, open }) => {
    const flowhook = new Flowhook({ url: service.url, key: service.key });
    await flowhook.workflows.put('made', { source: { type: 'push' } });
    const records = Array.from({ length: 40 }, (_, n) => ({ id: String(n), price: 10 + n, city: 'Ghent' }));
    await flowhook.workflows.push('made', records);
    await open('workflows/made/quality');
    await page.getByText('None in the newest 1 run').waitFor();
    await page.getByRole('img', { name: 'Filled, price: 100 % in the newest of 1 runs' }).waitFor();
    await page.getByRole('button', { name: 'Expect this: price' }).click();
    await page.getByRole('dialog').getByText('"type"').waitFor();
    await page.getByRole('button', { name: 'Save expectation' }).click();
    await page.getByText('Runs now expect this of price').waitFor();
    const { text } = await flowhook.workflows.definition('made');
    assert.ok(JSON.parse(text ?? '').expect.fields.price);
  });

  pageTest('an expectation is copied as YAML if a file defines the workflow', async ({ page, open }) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await open('workflows/filed/quality');
    await page.getByRole('button', { name: 'Copy YAML: price' }).click();
    await page.getByText('Copied', { exact: true }).waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    assert.match(String(copied), /^expect:\n {2}fields:\n {4}"price": \{ "type": /);
    const parsed = parseYamlDefinition(`source: { type: push }\n${copied}`, { file: 'filed.yaml' });
    assert.ok('definition' in parsed, JSON.stringify(parsed));
  });

  pageTest('a stale workflow says so until a run succeeds', async ({ page, open }) => {
    await open('workflows/awaited');
    const banner = page.getByText('A run had to succeed by');
    await page.getByText('Fresh until').waitFor();
    assert.equal(await banner.count(), 0);
    aheadMs = 31 * 60_000;
    await freshnessChecking({
      store: service.store,
      log: silentLogger,
      random: () => 0,
      nodeId: 'another',
    }).tick();
    await banner.waitFor();
    await page.getByText('Stale', { exact: true }).waitFor();
    await open('workflows');
    await page.getByRole('row', { name: 'awaited' }).getByText('Stale').waitFor();
    await open('');
    const attention = page.getByRole('region', { name: 'Needs attention' });
    await attention.getByText('A run had to succeed by').waitFor();
    await attention.getByRole('link', { name: 'awaited' }).click();
    await banner.waitFor();
    await new Flowhook({ url: service.url, key: service.key }).workflows.push('awaited', [{ id: 1 }]);
    await banner.waitFor({ state: 'detached' });
  });

  pageTest('a run names what it did not meet and has set aside', async ({ page, open }) => {
    const flowhook = new Flowhook({ url: service.url, key: service.key });
    const [job] = await flowhook.jobs
      .list({ workflowId: 'shop' })
      .take(10)
      .then((jobs) => jobs.filter(({ quarantined }) => quarantined === 2));
    await open(`runs/${job?.id}`);
    await page.getByRole('alert').getByText('is not of the type number').waitFor();
    await page.getByRole('link', { name: '2 records' }).click();
    await page.getByRole('heading', { name: 'shop' }).waitFor();
    assert.match(page.url(), /quarantine\?job=/);
  });
});
