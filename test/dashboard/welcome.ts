/** The first three steps in the dashboard. */
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { mintKey } from '../../src/teams/keys.ts';
import { signedInTests } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

describe('first steps', () => {
  let service: TestService;
  before(async () => {
    service = await startService({
      workflows: {
        'default/inbox.yaml': 'source: { type: push }\n',
        'default/people.yaml': `name: People\nsource: { type: command, command: [printf, '{"id":1,"name":"Ada"}\\n'] }\n`,
      },
    });
  });
  after(() => service.stop());
  const pageTest = signedInTests(() => service);

  pageTest('guides a new team through its first steps', async ({ page, open }) => {
    await open('');
    const steps = page.getByRole('region', { name: 'First steps' });
    await steps.getByText('0 of 3 done').waitFor();
    await steps.getByRole('button', { name: 'Run People' }).click();
    await steps.getByText('2 of 3 done').waitFor();
    await steps.getByRole('link', { name: '1 record of People' }).click();
    await page.getByText('Ada').first().waitFor();
    await page.goBack();
    await steps.getByRole('button', { name: 'Try with an inspector' }).click();
    await page.waitForURL(/\/ui\/inspector\/insp_/);
    assert.match(await page.title(), /· Flowhook$/);
    // The page of the inspector offers a test event and a run.
    const subscriptions = page.getByRole('region', { name: 'Subscriptions' });
    await subscriptions.getByText('Subscribed to all events of people').waitFor();
    await subscriptions.getByRole('button', { name: 'Send test event' }).click();
    await page.getByRole('region', { name: 'Request 1' }).getByText('"webhook_test"').first().waitFor();
    await subscriptions.getByRole('button', { name: 'Run People' }).click();
    await page.getByRole('button', { name: /workflow_finished/ }).waitFor();

    // With all steps done, the overview hides them and the welcome page still shows them.
    await page.goto(`${service.url}/ui/`);
    await page.getByRole('region', { name: 'Latest runs' }).getByText('People').first().waitFor();
    await steps.waitFor({ state: 'detached' });
    await open('welcome');
    await steps.getByText('All done').waitFor();
  });

  const readerTest = signedInTests(async () => {
    const team = await service.store.teams.bySlug({ slug: 'default' });
    const { key } = await mintKey(service.store, {
      teamId: team?.id ?? '',
      name: 'reader',
      scopes: ['read'],
      expiresAt: null,
    });
    return { url: service.url, key };
  });
  readerTest('names the scopes that a step needs and the key lacks', async ({ page, open }) => {
    await open('welcome');
    const steps = page.getByRole('region', { name: 'First steps' });
    await steps.getByText('lacks the scope queue').waitFor();
    await steps.getByText('This needs a key with the scope webhooks').waitFor();
    assert.equal(await steps.getByRole('button', { name: 'Try with an inspector' }).count(), 0);
    assert.equal(await page.getByRole('link', { name: 'API keys' }).count(), 0);
    await open('keys');
    await page.getByText('Your key cannot see').waitFor();
  });
});
