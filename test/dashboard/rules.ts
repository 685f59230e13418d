/** Rules of webhooks in the dashboard: made by clicks, tried while they are edited, and explained afterwards. */
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import type { Locator } from 'playwright-core';
import { signedInTests } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

const push = 'source: { type: push }\n';

describe('rules of webhooks', () => {
  let service: TestService;
  before(async () => {
    service = await startService({
      workflows: { 'default/shop.yaml': `name: Shop\n${push}`, 'default/jobs.yaml': `name: Jobs\n${push}` },
    });
    await send('shop', { lamp: 100, chair: 200 });
    await send('jobs', { '1': 1 });
  });
  after(() => service.stop());
  const pageTest = signedInTests(() => service);

  async function send(workflow: string, prices: Record<string, number | string>): Promise<void> {
    const records = Object.entries(prices).map(([id, price]) => ({ id, price }));
    const { status, body } = await service.call('POST', `/v1/workflows/${workflow}/push`, records);
    assert.ok(status < 300, JSON.stringify(body));
  }

  async function create(fields: object): Promise<string> {
    const { status, body } = await service.call('POST', '/v1/integrations/webhooks', {
      webhookUrl: `${service.url}/none`,
      events: ['workflow_data_change'],
      ...fields,
    });
    assert.ok(status < 300, JSON.stringify(body));
    return (body as { id: string }).id;
  }

  /** Chooses an option of a select. */
  async function choose(within: Locator, label: string, option: string): Promise<void> {
    await within.getByRole('combobox', { name: label }).click();
    await within.page().getByRole('option', { name: option }).click();
  }

  pageTest(
    'makes a filter for prices that fall by 5 % by clicks only, and sends exactly the difference that matches',
    async ({ page, open }) => {
      await open('webhooks');
      await page.getByRole('button', { name: 'New webhook' }).first().click();
      const dialog = page.getByRole('dialog', { name: 'New webhook' });
      await choose(dialog, 'Workflow', 'Shop');
      await dialog.getByRole('button', { name: 'Use an inspector URL' }).click();
      await choose(dialog, 'Notify me when', 'a number falls by');
      const filter = dialog.getByRole('textbox', { name: 'Filter' });
      assert.equal(await filter.inputValue(), 'fallsBy(previous.price, record.price, "5%")');
      assert.ok(await dialog.getByRole('checkbox', { name: 'workflow_data_change' }).isChecked());
      assert.ok(!(await dialog.getByRole('checkbox', { name: 'workflow_finished' }).isChecked()));
      await dialog.getByText('None of the last').waitFor();
      await dialog.getByText('first version').first().waitFor();
      await dialog.getByRole('button', { name: 'Subscribe' }).click();
      await dialog.waitFor({ state: 'detached' });

      await send('shop', { lamp: 94, chair: 198 });
      await page.getByRole('link', { name: 'Delivered' }).click();
      const body = page.getByRole('group', { name: 'Request body' });
      await body.getByText('"lamp"').waitFor();
      assert.equal(await body.getByText('"chair"').count(), 0);
      await page.goBack();
      await page.getByRole('link', { name: 'View in inspector' }).click();
      const request = page.getByRole('region', { name: 'Request 1' });
      await request.getByText('"lamp"').first().waitFor();
      assert.equal(await request.getByText('"chair"').count(), 0);
    },
  );

  pageTest(
    'tries a rule on past events while it is edited, and marks the place of a mistake',
    async ({ page, open }) => {
      const id = await create({ workflowId: 'shop' });
      await send('shop', { lamp: 47, chair: 198 });
      await open(`webhooks/${id}?tab=rule`);
      const tried = page.getByRole('region', { name: 'The last events with this rule' });
      await tried.getByText(/^\d of the last \d events would be sent/).waitFor();
      await choose(page.locator('#page'), 'Notify me when', 'a number falls below');
      await page.getByText('Enter a number, such as 50').waitFor();
      await page.getByRole('textbox', { name: 'Value' }).fill('50');
      await tried.getByText('1 of 1 difference match').waitFor();
      const body = tried.getByRole('group', { name: 'Body that would be sent' });
      await body.getByText('"lamp"').waitFor();

      const filter = page.getByRole('textbox', { name: 'Filter' });
      await filter.fill('recrod.price < 50');
      const mark = page.locator('mark');
      await mark.waitFor();
      assert.equal(await mark.textContent(), 'recrod');
      assert.equal(await filter.getAttribute('aria-invalid'), 'true');
      assert.ok(await page.getByRole('button', { name: 'Save' }).isDisabled());

      await filter.fill('record.price < 50');
      await choose(page.locator('#page'), 'Format', 'Template');
      const template = page.getByRole('textbox', { name: 'Template' });
      await template.fill('{"cheap": ');
      await page.getByText(/^The template is not valid JSON/).waitFor();
      await template.fill(`{"cheap": "\${id} costs \${record.price}"}`);
      await body.getByText('"lamp costs 47"').waitFor();
      await page.getByRole('textbox', { name: 'Name' }).fill('Cheap things');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('heading', { level: 1, name: 'Cheap things' }).waitFor();
      await page.getByRole('tab', { name: 'Decisions' }).waitFor();
    },
  );

  pageTest('completes names with the keyboard alone', async ({ page, open }) => {
    const id = await create({ workflowId: 'jobs' });
    await open(`webhooks/${id}?tab=rule`);
    const filter = page.getByRole('textbox', { name: 'Filter' });
    await filter.focus();
    await page.keyboard.type('record.p');
    await page.getByRole('option', { name: 'record.price' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.keyboard.type(' < 5 && ');
    await page.keyboard.press('Control+Space');
    await page.getByRole('option', { name: 'fallsBelow' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('option', { name: 'fallsBelow' }).waitFor({ state: 'hidden' });
    await page.keyboard.type('chan');
    await page.getByRole('option', { name: /^change\s*"/ }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.keyboard.type(' == "added"');
    assert.equal(await filter.inputValue(), 'record.price < 5 && change == "added"');
    await page.keyboard.press('Tab');
    await page.locator('input[role=combobox]:focus').waitFor();
  });

  pageTest(
    'explains why an event was not sent, on the page of the webhook and on that of the event, and shows the last mistake',
    async ({ page, open }) => {
      const id = await create({ workflowId: 'jobs', name: 'Only mine', filter: 'record.price < 0' });
      await send('jobs', { '1': 2, '2': 'two' });
      await open(`webhooks/${id}?tab=decisions`);
      await page.getByText('0 of 2 differences match').waitFor();
      const alert = page.getByRole('alert').filter({ hasText: 'The filter fails on some records' });
      await alert.getByText('2', { exact: true }).waitFor();
      await page.getByRole('link', { name: 'Filtered' }).click();
      await page.getByRole('heading', { level: 1, name: 'workflow_data_change' }).waitFor();
      const row = page.getByRole('row', { name: 'Only mine' });
      await row.getByText('0 of 2 differences match').waitFor();
    },
  );
});
