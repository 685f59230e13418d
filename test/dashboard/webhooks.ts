/** Webhooks in the dashboard: subscribing, testing, inspecting attempts and resending. */
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
    'subscribes an inspector, and shows the signed request that it receives',
    async ({ page, open }) => {
      await open('webhooks');
      await page.getByText('No webhooks yet').waitFor();
      await page.getByRole('button', { name: 'New webhook' }).click();
      const dialog = page.getByRole('dialog', { name: 'New webhook' });
      await dialog.getByRole('button', { name: 'Use an inspector URL' }).click();
      await dialog.getByRole('button', { name: 'Subscribe' }).click();
      await page.getByRole('heading', { level: 1, name: service.url }).waitFor();
      assert.match(page.url(), /\/ui\/webhooks\/wh_/);

      await page.getByRole('button', { name: 'Send test event' }).click();
      await page.getByRole('heading', { name: 'Delivery of webhook_test' }).waitFor();
      await page.getByText('Delivered', { exact: true }).first().waitFor();
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
      await request.getByText('Valid signature').first().waitFor();
      await request.getByText('"webhook_test"').first().waitFor();
    },
  );

  pageTest(
    'shows the requests of an inspector as they arrive, and markup as text',
    async ({ page, open }) => {
      const { body } = await service.call('POST', '/v1/inspectors', {});
      const { id, url } = body as { id: string; url: string };
      await open(`inspector/${id}`);
      await page.getByText('Waiting for the first request').waitFor();
      await fetch(url, { method: 'POST', body: MARKUP, headers: { 'x-markup': MARKUP } });
      await page.getByText('Not signed').first().waitFor();
      assert.equal(await page.getByText(MARKUP, { exact: true }).count(), 2);
      assert.equal(await page.locator('#page img').count(), 0);

      // Subscribes the inspector and tests the subscription from its page.
      await page.getByRole('button', { name: 'Subscribe to events' }).click();
      const dialog = page.getByRole('dialog', { name: 'New webhook' });
      await dialog.getByRole('button', { name: 'Subscribe' }).click();
      await dialog.waitFor({ state: 'detached' });
      assert.match(page.url(), /\/ui\/inspector\/insp_/);
      await page.getByRole('button', { name: 'Send test event' }).click();
      await page.getByRole('button', { name: /webhook_test/ }).waitFor();
      const { body: all } = await service.call('GET', '/v1/integrations/webhooks');
      const webhookId = (all as { webhooks: { id: string }[] }).webhooks.at(-1)?.id;
      await open(`webhooks/${webhookId}`);
      await page.getByRole('link', { name: 'View in inspector' }).click();
      await page.getByRole('region', { name: 'Subscriptions' }).waitFor();
    },
  );

  pageTest('resends one delivery from its page, and several from the list', async ({ page, open, t }) => {
    const receiver = await startReceiver();
    t.after(() => receiver.stop());
    const id = await subscribe(receiver.url);
    await service.call('POST', '/v1/workflows/people/push', [{ id: 1 }]);
    await open(`webhooks/${id}`);
    await page.getByRole('link', { name: 'Delivered' }).click();
    await page.getByRole('heading', { name: 'Delivery of workflow_finished' }).waitFor();
    await page.getByRole('button', { name: 'Resend' }).click();
    await page.getByText('Replay', { exact: true }).waitFor();
    await page.getByText('Delivered', { exact: true }).first().waitFor();
    await receiver.until((all) => all.length === 2, 'what was sent again');
    assert.equal(receiver.received[1]?.event.id, receiver.received[0]?.event.id);

    await page.goBack();
    await page.goBack();
    await page.getByText('2 deliveries').waitFor();
    await page.getByRole('checkbox', { name: 'Select all loaded rows' }).check();
    await page.getByRole('button', { name: 'Resend 2 deliveries' }).click();
    // Both are deliveries of one event, which is sent once.
    await receiver.until((all) => all.length === 3, 'their event, sent again');
    await page.getByText('3 deliveries').waitFor();
  });

  pageTest(
    'retries a waiting delivery, counts a replay before it starts, and shows green only if all deliveries arrived',
    async ({ page, open, t }) => {
      // Each event is accepted only once the test wants it to arrive, because a slow test also sees scheduled retries.
      let accepts = (_eventId: string) => false;
      const receiver = await startReceiver({ status: ({ event }) => (accepts(event.id) ? 204 : 401) });
      t.after(() => receiver.stop());
      const id = await subscribe(receiver.url);
      const test = () => service.call('POST', `/v1/integrations/webhooks/${id}/test`);
      for (let number = 0; number < 3; number += 1) await test();
      await receiver.until((all) => all.length === 3, 'three attempts');
      await open(`webhooks/${id}`);
      // The first failed delivery was created before the webhook started failing, and still counts.
      await page.getByText('No attempt has succeeded yet').waitFor();
      const progress = page.getByRole('status').filter({ hasText: 'resent' });
      const dialog = page.getByRole('dialog', { name: 'Replay deliveries' });
      const replay = async (label: string, beforeStart = () => {}) => {
        await page.getByRole('button', { name: 'Replay…' }).click();
        const button = dialog.getByRole('button', { name: label, exact: true });
        await button.waitFor();
        beforeStart();
        await button.click();
        await dialog.waitFor({ state: 'detached' });
      };
      await page.getByRole('button', { name: 'Replay…' }).click();
      await dialog.getByRole('checkbox', { name: 'Waiting (3)', checked: true }).waitFor();
      await dialog.getByRole('checkbox', { name: 'Given up (0)', checked: true }).waitFor();
      await dialog.getByRole('checkbox', { name: 'Waiting (3)' }).uncheck();
      await dialog.getByText('Not selected: 3 waiting').waitFor();
      assert.ok(await dialog.getByRole('button', { name: 'Replay', exact: true }).isDisabled());
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await replay('Replay 3 events');
      await page.getByText('3 deliveries failed again').waitFor();
      await progress.getByText(/3 × HTTP 401/).waitFor();

      const [waiting] = (
        (await service.call('GET', `/v1/integrations/webhooks/${id}/deliveries?state=waiting`)).body as {
          deliveries: { id: string; eventId: string }[];
        }
      ).deliveries;
      accepts = (eventId) => eventId === waiting?.eventId;
      await open(`deliveries/${waiting?.id}`);
      await page.getByRole('button', { name: 'Retry now' }).click();
      await page.getByText('Delivered', { exact: true }).first().waitFor();
      assert.ok(page.url().endsWith(waiting?.id ?? '?'), 'it is the same delivery');
      await page.getByRole('button', { name: 'Resend' }).waitFor();

      await open(`webhooks/${id}`);
      await replay('Replay 2 events', () => {
        accepts = () => true;
      });
      await page.getByText('2 deliveries arrived').waitFor();
      const { body } = await service.call('GET', `/v1/integrations/webhooks/${id}/deliveries`);
      assert.equal((body as { deliveries: unknown[] }).deliveries.length, 3, 'no event has two deliveries');
    },
  );

  pageTest('starts a replay while its deliveries are counted again', async ({ page, open, t }) => {
    const receiver = await startReceiver({ status: () => 401 });
    t.after(() => receiver.stop());
    const id = await subscribe(receiver.url);
    const test = () => service.call('POST', `/v1/integrations/webhooks/${id}/test`);
    await test();
    await receiver.until((all) => all.length === 1, 'the first attempt');
    await open(`webhooks/${id}`);
    await page.getByText('No attempt has succeeded yet').waitFor();
    await page.getByRole('button', { name: 'Replay…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Replay deliveries' });
    const button = dialog.getByRole('button', { name: 'Replay 1 event', exact: true });
    await button.waitFor();
    // The next count never ends. A button that it disabled would lose a click.
    await page.route(/\/replay$/, (route) =>
      route.request().postData()?.includes('dryRun') ? undefined : route.continue(),
    );
    const counting = page.waitForRequest((request) => request.postData()?.includes('dryRun') === true);
    await test();
    await counting;
    await button.click();
    await dialog.waitFor({ state: 'detached' });
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.getByText('1 delivery failed again').waitFor();
  });

  pageTest(
    'explains a failed attempt, and renders markup in the response as text',
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
    'explains why a webhook backs off and when the next attempt is due, in the list, on its page and for a test event',
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
      await alert.getByText(/^Backing off for .+: the endpoint has failed \d+ times in a row\./).waitFor();
      await alert.getByText(/Next attempt in \d+ s/).waitFor();
      await page
        .getByText(/On hold, next attempt in/)
        .first()
        .waitFor();

      await page.getByRole('button', { name: 'Send test event' }).click();
      await page.getByText(/^The test is waiting\. The endpoint has failed/).waitFor();
      await page.getByText(/^Waiting: the endpoint has failed \d+ times in a row$/).waitFor();
      await page.getByText(/^Next attempt in/).waitFor();
      await page.getByText('No attempts yet. See above for the reason.').waitFor();

      await open('webhooks');
      const row = page.getByRole('row', { name: url });
      await row.getByText('Failing, backing off').waitFor();
      await row.getByText(/^Next attempt in/).waitFor();
      // The URL is cut in the middle: its end stays visible, and the title has all of it.
      const widthOf = async (locator: Locator) => (await locator.boundingBox())?.width ?? 0;
      const cell = (await row.getByRole('cell').first().boundingBox()) ?? assert.fail('there is no cell');
      const end = await row.getByText('/acme', { exact: true }).boundingBox();
      assert.ok(end !== null && end.width > 20 && end.x + end.width <= cell.x + cell.width);
      assert.ok((await widthOf(row.locator('bdi'))) > (await widthOf(row.locator('span:has(> bdi)'))));
      assert.equal(await row.locator(`[title="${url}"]`).count(), 1);
    },
  );

  pageTest('explains once why a webhook is paused, with a readable time', async ({ page, open }) => {
    const id = await subscribe(`${service.url}/moved`);
    await service.call('POST', `/v1/integrations/webhooks/${id}/pause`, {
      reason: 'Nothing since 2026-11-15T20:57:18.041Z: see `Retry-After`',
    });
    await service.call('POST', `/v1/integrations/webhooks/${id}/test`);
    await open(`webhooks/${id}`);
    await page.getByText('The webhook is paused').waitFor();
    await page
      .getByText(/^Paused for .+: Nothing since 2026-11-1[56] \d\d:57:18: see Retry-After$/)
      .waitFor();
    assert.equal(await page.getByText(/you resume/).count(), 1);
    assert.equal(await page.locator('#page').getByRole('alert').count(), 1);
  });

  pageTest('shows nothing of one webhook on the page of another', async ({ page, open }) => {
    const [one, other] = [await subscribe(`${service.url}/one`), await subscribe(`${service.url}/other`)];
    await open(`webhooks/${one}?tab=settings`);
    await page.getByRole('heading', { level: 1, name: '/one' }).waitFor();
    await page.keyboard.press('ControlOrMeta+k');
    await page.getByRole('dialog', { name: 'Quick search' }).locator('input').fill(other);
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
