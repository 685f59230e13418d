/** Messages for people in the dashboard: previews, and deliveries that are shown as their readers see them. */
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import type { Locator } from 'playwright-core';
import { signedInTests } from '../support/browser/browser.ts';
import { type SmtpReceiver, smtpReceiver } from '../support/mail/smtp-receiver.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';

describe('messages for people', () => {
  let service: TestService;
  let smtp: SmtpReceiver;
  before(async () => {
    smtp = await smtpReceiver();
    service = await startService({
      settings: {
        FLOWHOOK_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
        FLOWHOOK_MAIL_FROM: 'flowhook@example.org',
      },
      workflows: { 'default/shop.yaml': 'name: Shop\nsource: { type: push }\n' },
    });
    await send({ lamp: 52, chair: 80 });
    await send({ lamp: 47, chair: 80 });
  });
  after(async () => {
    await service.stop();
    await smtp.close();
  });
  const pageTest = signedInTests(() => service);

  async function send(prices: Record<string, number>): Promise<void> {
    const records = Object.entries(prices).map(([id, price]) => ({ id, price }));
    const { status, body } = await service.call('POST', '/v1/workflows/shop/push', records);
    assert.ok(status < 300, JSON.stringify(body));
  }

  async function create(fields: object): Promise<string> {
    const { status, body } = await service.call('POST', '/v1/integrations/webhooks', {
      workflowId: 'shop',
      webhookUrl: `${service.url}/none`,
      events: ['workflow_data_change'],
      ...fields,
    });
    assert.ok(status < 300, JSON.stringify(body));
    return (body as { id: string }).id;
  }

  pageTest(
    'runs nothing in a mail, and shows its styles in the theme of the page',
    async ({ page, open }) => {
      // Not even blocked scripts: a page that logs an error fails its test.
      const html =
        '<!doctype html><html><head><style>@media (prefers-color-scheme: dark) { p { color: rgb(4, 5, 6) !important } }</style></head>' +
        '<body style="margin:0"><p style="color:rgb(1, 2, 3)">Hello</p></body></html>';
      const template = { subject: 'One price fell', text: 'Hello in plain text', html };
      const id = await create({ format: 'template', template });
      await open(`webhooks/${id}?tab=rule`);
      const tried = page.getByRole('region', { name: 'The last events with this rule' });
      await tried.getByText('One price fell').first().waitFor();
      const frame = tried.locator('iframe').first();
      assert.doesNotMatch(
        (await frame.getAttribute('sandbox')) ?? 'allow-scripts',
        /allow-scripts|allow-top/,
      );
      const text = frame.contentFrame().getByText('Hello');
      await text.waitFor();
      const colorOf = async () =>
        (await frame.elementHandle())
          ?.contentFrame()
          .then((inside) => inside?.evaluate('getComputedStyle(document.querySelector("p")).color'));
      assert.equal(await colorOf(), 'rgb(1, 2, 3)');
      await tried.getByText('Text', { exact: true }).first().click();
      await tried.getByText('Hello in plain text').waitFor();
      await tried.getByText('JSON', { exact: true }).first().click();
      await tried.getByRole('group', { name: 'Body that would be sent' }).getByText('"subject"').waitFor();

      await page.emulateMedia({ colorScheme: 'dark' });
      await tried.getByText('Mail', { exact: true }).first().click();
      await text.waitFor();
      assert.equal(await colorOf(), 'rgb(4, 5, 6)');
      await page.emulateMedia({ colorScheme: 'light' });
    },
  );

  pageTest(
    'sends mail once the address is verified, and shows what was sent as a letter',
    async ({ page, open }) => {
      await open('webhooks');
      await page.getByRole('button', { name: 'New webhook' }).first().click();
      const dialog = page.getByRole('dialog', { name: 'New webhook' });
      await choose(dialog, 'Workflow', 'Shop');
      await dialog.getByRole('radio', { name: 'Mail' }).click();
      await dialog.getByRole('textbox', { name: 'Mail address' }).fill('ops@example.org');
      await dialog.getByRole('button', { name: 'Subscribe' }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.getByRole('heading', { level: 1, name: 'ops@example.org' }).waitFor();
      const header = page.locator('header').filter({ has: page.getByRole('heading', { level: 1 }) });
      await header.getByText('Not verified').waitFor();
      assert.equal(await page.getByRole('button', { name: 'Resume' }).count(), 0);
      await page.getByRole('button', { name: 'Send the mail again' }).click();
      const { raw, mail } = await smtp.mail(2);
      const [link] = /https?:[^\s"]+\/mail\/verify\/[^\s"]+/.exec(mail.text ?? '') ?? assert.fail(raw);
      const reader = await page.context().newPage();
      await reader.goto(link);
      await reader.getByRole('button').click();
      await reader.getByText('The address is confirmed').first().waitFor();
      await reader.close();
      await header.getByText('Active').waitFor();

      await page.getByRole('button', { name: 'Send test event' }).click();
      const letter = page.getByRole('region', { name: 'Mail', exact: true }).first();
      const { mail: sent } = await smtp.mail(3);
      await letter
        .getByText(sent.subject ?? '')
        .first()
        .waitFor();
      await letter
        .locator('iframe')
        .contentFrame()
        .getByRole('heading', { name: 'A test message' })
        .waitFor();
      const attempt = page.getByRole('button', { name: 'Attempt 1' });
      await attempt.getByText('250', { exact: true }).waitFor();
      await page.getByRole('heading', { name: 'Reply of the mail server' }).waitFor();
      assert.equal(await page.getByRole('button', { name: 'Signed curl' }).count(), 0);
      await page.goBack();
      await page.getByRole('tab', { name: 'Settings' }).click();
      await page.getByRole('heading', { name: 'Delivery', exact: true }).waitFor();
      assert.equal(await page.getByRole('heading', { name: 'Custom headers' }).count(), 0);
    },
  );

  pageTest(
    'subscribes a chat with a digest: by its address, with a preview of the message and of its JSON',
    async ({ page, open, t }) => {
      const receiver = await startReceiver();
      t.after(() => receiver.stop());
      await open('webhooks');
      await page.getByRole('button', { name: 'New webhook' }).first().click();
      const dialog = page.getByRole('dialog', { name: 'New webhook' });
      await choose(dialog, 'Workflow', 'Shop');
      await dialog.getByRole('textbox', { name: 'URL' }).fill('https://discord.com/api/webhooks/1/x');
      assert.ok(await dialog.getByRole('radio', { name: 'Discord' }).isChecked(), 'the address chooses it');
      await dialog.getByText('Copy Webhook URL').waitFor();
      await dialog.getByRole('radio', { name: 'Slack' }).click();
      await dialog.getByRole('textbox', { name: 'URL of the incoming webhook' }).fill(receiver.url);
      await dialog.getByText('This is not an address of Slack').waitFor();
      assert.ok(await dialog.getByRole('checkbox', { name: 'workflow_data_change' }).isChecked());
      assert.ok(!(await dialog.getByRole('checkbox', { name: 'workflow_finished' }).isChecked()));

      const tried = dialog.getByRole('region', { name: 'The last events with this rule' });
      const message = tried.getByRole('region', { name: 'Message in Slack' });
      await message.getByText('shop: lamp changed').waitFor();
      await tried.getByText('JSON', { exact: true }).first().click();
      await tried.getByRole('group', { name: 'Body that would be sent' }).getByText('"blocks"').waitFor();

      await choose(dialog, 'Send', 'gathered, every');
      await dialog.getByRole('textbox', { name: 'Period' }).fill('1 fortnight');
      await dialog
        .getByText(/duration/)
        .first()
        .waitFor();
      assert.ok(await dialog.getByRole('button', { name: 'Subscribe' }).isDisabled());
      await choose(dialog, 'Send', 'gathered, once a day');
      await choose(dialog, 'Time zone of this time', 'UTC');
      await dialog.getByRole('button', { name: 'Subscribe' }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.getByText('Gathered, at 08:00 (UTC)').waitFor();
      await page.getByRole('tab', { name: 'Rule' }).click();
      await choose(page.locator('#page'), 'Send', 'immediately');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Gathered, at 08:00 (UTC)').waitFor({ state: 'detached' });

      await page.getByRole('button', { name: 'Send test event' }).click();
      const sent = page.getByRole('region', { name: 'Request body' });
      await sent.getByRole('region', { name: 'Message in Slack' }).getByText('A test message').waitFor();
    },
  );

  pageTest('offers messages about failures, until a webhook sends them', async ({ page, open, t }) => {
    const receiver = await startReceiver();
    t.after(() => receiver.stop());
    await open('');
    await page.getByRole('button', { name: 'Tell me when something breaks' }).click();
    const dialog = page.getByRole('dialog', { name: 'Tell me when something breaks' });
    const submit = dialog.getByRole('button', { name: 'Subscribe' });
    await dialog.getByRole('textbox', { name: 'Mail address' }).fill('one@example.org, two@example.org');
    await dialog.getByText('Enter one mail address').waitFor();
    assert.ok(await submit.isDisabled());
    await dialog.getByRole('radio', { name: 'Teams' }).click();
    await dialog.getByRole('textbox', { name: 'URL of the workflow' }).fill(receiver.url);
    await submit.click();
    await page.getByRole('heading', { level: 1, name: 'When something breaks' }).waitFor();
    await page.getByText('recovered, webhook_failing, webhook_paused').waitFor();
    await open('');
    await page.getByRole('region', { name: 'Needs attention' }).waitFor();
    await page.getByRole('button', { name: 'Tell me when something breaks' }).waitFor({ state: 'detached' });
  });

  pageTest('creates, changes, rotates and revokes a feed', async ({ page, open }) => {
    const statusOf = async (url: string) => (await fetch(url)).status;
    await open('workflows/shop/feeds');
    await page.getByText('No feeds yet').waitFor();
    await page.getByRole('button', { name: 'New feed' }).click();
    const dialog = page.getByRole('dialog', { name: 'New feed' });
    await dialog.getByRole('textbox', { name: 'Title' }).fill('Cheap things');
    await dialog.getByRole('textbox', { name: 'Filter' }).fill('recrod.price < 50');
    await dialog.locator('mark').waitFor();
    assert.ok(await dialog.getByRole('button', { name: 'Create feed' }).isDisabled());
    await dialog.getByRole('textbox', { name: 'Filter' }).fill('record.price < 50');
    await dialog.getByRole('button', { name: 'Create feed' }).click();
    await dialog.waitFor({ state: 'detached' });

    const feed = page.getByRole('region', { name: 'Cheap things' });
    await feed.getByText('One entry per changed record, of the last 30d, at most 50 entries').waitFor();
    const addressOf = async () => (await feed.locator('[title$=".atom"]').getAttribute('title')) ?? '';
    const first = await addressOf();
    assert.match(await (await fetch(first)).text(), /<title>Cheap things<\/title>/);
    await feed.getByRole('button', { name: 'Copy the address of Atom of Cheap things' }).click();
    await feed.getByRole('button', { name: 'Copied' }).waitFor();
    const [opened] = await Promise.all([
      page.context().waitForEvent('page'),
      feed.getByRole('button', { name: 'Open the page' }).click(),
    ]);
    await opened.getByRole('heading', { level: 1, name: 'Cheap things' }).waitFor();
    await opened.getByText('lamp').first().waitFor();
    await opened.close();

    await feed.getByRole('button', { name: 'Edit Cheap things' }).click();
    const editor = page.getByRole('dialog', { name: 'Edit Cheap things' });
    await choose(editor, 'One entry per', 'Version');
    await editor.getByRole('button', { name: 'Save' }).click();
    await feed.getByText('One entry per version').waitFor();
    assert.equal(await addressOf(), first);

    await feed.getByRole('button', { name: 'Rotate Cheap things' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    await feed.locator(`[title="${first}"]`).waitFor({ state: 'detached' });
    const second = await addressOf();
    assert.deepEqual([await statusOf(first), await statusOf(second)], [410, 200]);
    await feed.getByRole('button', { name: 'Revoke Cheap things' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('No feeds yet').waitFor();
    assert.equal(await statusOf(second), 410);
  });
});

/** Chooses an option of a select. */
async function choose(within: Locator, label: string, option: string): Promise<void> {
  await within.getByRole('combobox', { name: label, exact: true }).click();
  await within.page().getByRole('option', { name: option }).first().click();
}
