/** Webhooks in the dashboard: subscribed, tried, read attempt by attempt, and sent again. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe } from 'node:test';
import type { Locator } from 'playwright-core';
import { signedInTests } from '../support/browser/browser.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';

const MARKUP = '<img src=x onerror=document.title=1><script>document.title=2</script>';

describe('webhooks', () => {
  let service: TestService;
  before(async () => {
    service = await startService({
      workflows: { 'default/people.yaml': 'name: People\nsource: { type: push }\n' },
    });
  });
  after(() => service.stop());
  const pageTest = signedInTests(() => service);

  async function subscribe(url: string): Promise<string> {
    const { status, body } = await service.call('POST', '/v1/integrations/webhooks', {
      webhookUrl: url,
      events: ['workflow_finished'],
    });
    assert.ok(status < 300, JSON.stringify(body));
    return (body as { id: string }).id;
  }

  pageTest(
    'who has no receiver subscribes an inspector, and sees what it is sent, and that it is signed',
    async ({ page, open }) => {
      await open('webhooks');
      await page.getByText('No webhooks yet').waitFor();
      await page.getByRole('button', { name: 'Subscribe' }).click();
      const dialog = page.getByRole('dialog', { name: 'Subscribe a webhook' });
      await dialog.getByRole('button', { name: 'Use an inspector URL' }).click();
      await dialog.getByRole('button', { name: 'Subscribe' }).click();
      await page.getByRole('heading', { level: 1, name: service.url }).waitFor();
      assert.match(page.url(), /\/ui\/webhooks\/wh_/);

      await page.getByRole('button', { name: 'Send test event' }).click();
      await page.getByRole('heading', { name: 'Delivery of webhook_test' }).waitFor();
      await page.getByText('delivered', { exact: true }).first().waitFor();
      const attempt = page.getByRole('button', { name: 'Attempt 1' });
      await attempt.getByText('204', { exact: true }).waitFor();
      await page
        .getByRole('table', { name: 'Request headers' })
        .getByText('webhook-signature')
        .first()
        .waitFor();

      await page.getByRole('link', { name: 'Inspector' }).click();
      await page.getByRole('row', { name: service.url }).getByRole('link').first().click();
      const request = page.getByRole('region', { name: 'Request 1' });
      await request.getByText('The signature is valid').first().waitFor();
      await request.getByText('"webhook_test"').first().waitFor();
    },
  );

  pageTest('an inspector shows what comes as it comes, and markup as text', async ({ page, open }) => {
    const { body } = await service.call('POST', '/v1/inspectors', {});
    const { id, url } = body as { id: string; url: string };
    await open(`inspector/${id}`);
    await page.getByText('Waiting for the first request').waitFor();
    await fetch(url, { method: 'POST', body: MARKUP, headers: { 'x-markup': MARKUP } });
    await page.getByText('It is not signed').first().waitFor();
    assert.equal(await page.getByText(MARKUP, { exact: true }).count(), 2);
    assert.equal(await page.locator('#page img').count(), 0);

    // It is subscribed from here, and tried here.
    await page.getByRole('button', { name: 'Subscribe it' }).click();
    const dialog = page.getByRole('dialog', { name: 'Subscribe a webhook' });
    await dialog.getByRole('button', { name: 'Subscribe' }).click();
    await dialog.waitFor({ state: 'detached' });
    assert.match(page.url(), /\/ui\/inspector\/insp_/);
    await page.getByRole('button', { name: 'Send test event' }).click();
    await page.getByRole('button', { name: /webhook_test/ }).waitFor();
    const { body: all } = await service.call('GET', '/v1/integrations/webhooks');
    const webhookId = (all as { webhooks: { id: string }[] }).webhooks.at(-1)?.id;
    await open(`webhooks/${webhookId}`);
    await page.getByRole('link', { name: 'See what arrives' }).click();
    await page.getByRole('region', { name: 'Who calls it' }).waitFor();
  });

  pageTest(
    'deliveries are sent again, one from its page and several from the list',
    async ({ page, open, t }) => {
      const receiver = await startReceiver();
      t.after(() => receiver.stop());
      const id = await subscribe(receiver.url);
      await service.call('POST', '/v1/workflows/people/push', [{ id: 1 }]);
      await open(`webhooks/${id}`);
      await page.getByRole('link', { name: 'delivered' }).click();
      await page.getByRole('heading', { name: 'Delivery of workflow_finished' }).waitFor();
      await page.getByRole('button', { name: 'Send again' }).click();
      await page.getByText('a replay').waitFor();
      await page.getByText('delivered', { exact: true }).first().waitFor();
      await receiver.until((all) => all.length === 2, 'what was sent again');
      assert.equal(receiver.received[1]?.event.id, receiver.received[0]?.event.id);

      await page.goBack();
      await page.goBack();
      await page.getByText('2 deliveries').waitFor();
      await page.getByRole('checkbox', { name: 'Select all loaded rows' }).check();
      await page.getByRole('button', { name: 'Send 2 deliveries again' }).click();
      // They are deliveries of one event, which is sent once.
      await receiver.until((all) => all.length === 3, 'their event, sent again');
      await page.getByText('3 deliveries').waitFor();
    },
  );

  pageTest(
    'what waits is retried at once, and a replay counts before it begins and is green only if all have arrived',
    async ({ page, open, t }) => {
      let status = 401;
      const receiver = await startReceiver({ status: () => status });
      t.after(() => receiver.stop());
      const id = await subscribe(receiver.url);
      const test = () => service.call('POST', `/v1/integrations/webhooks/${id}/test`);
      for (let number = 0; number < 3; number += 1) await test();
      await receiver.until((all) => all.length === 3, 'three attempts');
      await open(`webhooks/${id}`);
      // What failed first was created before the webhook began to fail, and is counted all the same.
      await page.getByText('No attempt has succeeded yet').waitFor();
      const progress = page.getByRole('status').filter({ hasText: 'sent again' });
      const dialog = page.getByRole('dialog', { name: 'Replay deliveries since a time' });
      const replay = async (button: string) => {
        await page.getByRole('button', { name: 'Replay…' }).click();
        await dialog.getByRole('button', { name: button, exact: true }).click();
        await dialog.waitFor({ state: 'detached' });
      };
      await page.getByRole('button', { name: 'Replay…' }).click();
      await dialog.getByRole('checkbox', { name: 'waiting (3)', checked: true }).waitFor();
      await dialog.getByRole('checkbox', { name: 'given up (0)', checked: true }).waitFor();
      await dialog.getByRole('checkbox', { name: 'waiting (3)' }).uncheck();
      await dialog.getByText('Nothing to send: 3 waiting').waitFor();
      assert.ok(await dialog.getByRole('button', { name: 'Replay', exact: true }).isDisabled());
      await dialog.getByRole('button', { name: 'Back' }).click();
      await replay('Replay 3 events');
      await page.getByText('3 deliveries failed again').waitFor();
      await progress.getByText(/3 × Answered 401/).waitFor();

      const [waiting] = (
        (await service.call('GET', `/v1/integrations/webhooks/${id}/deliveries?state=waiting`)).body as {
          deliveries: { id: string }[];
        }
      ).deliveries;
      status = 204;
      await open(`deliveries/${waiting?.id}`);
      await page.getByRole('button', { name: 'Retry now' }).click();
      await page.getByText('delivered', { exact: true }).first().waitFor();
      assert.ok(page.url().endsWith(waiting?.id ?? '?'), 'it is the same delivery');
      await page.getByRole('button', { name: 'Send again' }).waitFor();

      await open(`webhooks/${id}`);
      await replay('Replay 2 events');
      await page.getByText('All 2 have arrived').waitFor();
      const { body } = await service.call('GET', `/v1/integrations/webhooks/${id}/deliveries`);
      assert.equal((body as { deliveries: unknown[] }).deliveries.length, 3, 'no event has two deliveries');
    },
  );

  pageTest(
    'an attempt that failed says why, and what it was answered is text however full of markup',
    async ({ page, open, t }) => {
      const server = createServer((_, response) =>
        response.writeHead(500, { 'x-markup': MARKUP, 'content-type': 'text/html' }).end(MARKUP),
      );
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      t.after(() => {
        server.closeAllConnections();
        server.close();
      });
      const id = await subscribe(
        `http://127.0.0.1:${(server.address() as AddressInfo).port}/?<img/src=x/onerror=document.title=1>`,
      );
      await open(`webhooks/${id}`);
      await page.getByText('No deliveries yet').waitFor();
      await page.keyboard.press('t');
      await page.getByRole('alert').getByText('500').first().waitFor();
      await page.getByRole('table', { name: 'Response headers' }).getByText(MARKUP).waitFor();
      await page
        .getByLabel(/^Response body of attempt/)
        .first()
        .getByText(MARKUP)
        .waitFor();
      assert.equal(await page.locator('#page img').count(), 0);
      assert.match(await page.title(), /^Delivery of webhook_test/);
    },
  );

  pageTest(
    'a webhook that is held back says why and when it goes on: in its row, on its page and at a test event',
    async ({ page, open }) => {
      const url = 'http://127.0.0.1:9/integrations/flowhook/receivers/customers/production/acme';
      const id = await subscribe(url);
      const test = async () => {
        const { body } = await service.call('POST', `/v1/integrations/webhooks/${id}/test`);
        return body as { deliveryId: string };
      };
      for (let count = 0; count < 14; count += 1) await test();
      await open(`webhooks/${id}`);
      const alert = page.getByRole('alert');
      await alert.getByText('No attempt has succeeded yet').waitFor();
      await alert.getByText(/^Held back for .+: the endpoint has failed \d+ times in a row\./).waitFor();
      await alert.getByText(/The next attempt goes out in \d+ s/).waitFor();
      await page
        .getByText(/held back, next attempt in/)
        .first()
        .waitFor();

      await page.getByRole('button', { name: 'Send test event' }).click();
      await page.getByText(/^The test waits\. The endpoint has failed/).waitFor();
      await page.getByText(/^It waits: the endpoint has failed \d+ times in a row$/).waitFor();
      await page.getByText(/^The next attempt at this webhook goes out in/).waitFor();
      await page.getByText('None yet: it waits, for the reason above.').waitFor();

      await open('webhooks');
      const row = page.getByRole('row', { name: url });
      await row.getByText('failing, held back').waitFor();
      await row.getByText(/^next try in/).waitFor();
      // Cut in the middle: the end, by which URLs of one receiver differ, is seen whole, and all of it is in the title.
      const widthOf = async (locator: Locator) => (await locator.boundingBox())?.width ?? 0;
      const cell = (await row.getByRole('cell').first().boundingBox()) ?? assert.fail('there is no cell');
      const end = await row.getByText('/acme', { exact: true }).boundingBox();
      assert.ok(end !== null && end.width > 20 && end.x + end.width <= cell.x + cell.width);
      assert.ok((await widthOf(row.locator('bdi'))) > (await widthOf(row.locator('span:has(> bdi)'))));
      assert.equal(await row.locator(`[title="${url}"]`).count(), 1);
    },
  );

  pageTest('what is paused says so once, with its reason in the words of people', async ({ page, open }) => {
    const id = await subscribe(`${service.url}/moved`);
    await service.call('POST', `/v1/integrations/webhooks/${id}/pause`, {
      reason: 'Nothing since 2026-11-15T20:57:18.041Z: see `Retry-After`',
    });
    await service.call('POST', `/v1/integrations/webhooks/${id}/test`);
    await open(`webhooks/${id}`);
    await page.getByText('until the webhook is resumed').waitFor();
    await page
      .getByText(/^Paused for .+: Nothing since 2026-11-1[56] \d\d:57:18: see Retry-After$/)
      .waitFor();
    assert.equal(await page.getByText(/is resumed/).count(), 2);
    assert.equal(await page.locator('#page').getByRole('alert').count(), 1);
  });

  pageTest('of one webhook nothing is left on the page of another', async ({ page, open }) => {
    const [one, other] = [await subscribe(`${service.url}/one`), await subscribe(`${service.url}/other`)];
    await open(`webhooks/${one}?tab=settings`);
    await page.getByRole('heading', { level: 1, name: '/one' }).waitFor();
    await page.keyboard.press('ControlOrMeta+k');
    await page.getByRole('dialog', { name: 'Search everything' }).locator('input').fill(other);
    await page.getByRole('button', { name: `Open ${other}` }).click();
    await page.getByRole('heading', { level: 1, name: '/other' }).waitFor();
    await page.getByRole('tab', { name: 'Settings' }).click();
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText(/^whsec_/).waitFor();

    await page.goBack();
    await page.getByRole('heading', { level: 1, name: '/one' }).waitFor();
    await page.getByRole('button', { name: 'Show' }).waitFor();
    assert.equal(await page.getByText(/^whsec_/).count(), 0);
  });
});
