/** Messages for people in the dashboard: previews, and deliveries that are shown as their readers see them. */
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { signedInTests } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

describe('messages for people', () => {
  let service: TestService;
  before(async () => {
    service = await startService({
      workflows: { 'default/shop.yaml': 'name: Shop\nsource: { type: push }\n' },
    });
    await send({ lamp: 52, chair: 80 });
    await send({ lamp: 47, chair: 80 });
  });
  after(() => service.stop());
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
});
