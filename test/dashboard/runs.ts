/** Runs in the dashboard: following, canceling and repeating them, and restarts of the server. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { beginSession, browserTest, signedInTests } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

/** Runs until a file of this name exists beside the definition. */
const held = (name: string) =>
  `source: { type: command, command: [sh, -c, 'while [ ! -e ${name} ]; do sleep 0.05; done; echo "{\\"id\\":1}"'] }\n`;
const MARKUP = '<img src=x onerror=document.title=1>';

describe('runs', () => {
  let service: TestService;
  before(async () => {
    service = await startService({
      workflows: {
        'default/held.yaml': held('go'),
        'default/endless.yaml': held('never'),
        'default/quick.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
        'default/markup.yaml': `source: { type: command, command: [sh, -c, 'echo "${MARKUP}" >&2; exit 1'] }\nretries: { max: 0 }\n`,
      },
    });
  });
  after(() => service.stop());
  const pageTest = signedInTests(() => service);

  async function queue(id: string, { call } = service): Promise<string> {
    const answer = await call('POST', `/v1/workflows/${id}/queue`);
    assert.equal(answer.status, 200);
    return answer.headers.get('x-job-id') ?? '';
  }

  pageTest('follows a run to its end without reloading', async ({ page, open }) => {
    await open('runs');
    await page.getByText('No runs yet').waitFor();
    await queue('held');
    const row = page.getByRole('row', { name: 'held' });
    await row.getByText('Running').waitFor();
    await row.getByRole('link', { name: 'Running' }).click();
    await page.getByRole('heading', { name: 'Run of held' }).waitFor();
    await writeFile(join(service.directory, 'workflows/default/go'), '');
    await page.getByText('Finished', { exact: true }).first().waitFor();
    await page.getByText('1 record', { exact: true }).waitFor();
    await page.getByRole('region', { name: 'Changes' }).getByText('Added').waitFor();
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.getByText('No changes', { exact: true }).waitFor();
  });

  pageTest('cancels a run after a confirmation', async ({ page, open }) => {
    const id = await queue('endless');
    await open(`runs/${id}`);
    await page.getByText('Running').first().waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel run' }).click();
    await page.getByText('Canceled', { exact: true }).first().waitFor();
    assert.equal((await service.call('GET', `/v1/jobs/${id}`)).status, 200);
  });

  pageTest('renders markup in logs and errors as text', async ({ page, open }) => {
    const id = await queue('markup');
    await open(`runs/${id}`);
    await page.getByRole('alert').getByText(MARKUP).waitFor();
    await page.getByRole('region', { name: 'Log' }).first().getByText(MARKUP, { exact: true }).waitFor();
    assert.match(await page.title(), /^Run of markup/);
  });

  pageTest('keeps filters in the URL, and moves through rows with the keyboard', async ({ page, open }) => {
    await queue('quick');
    await open('runs?state=finished');
    const quick = page.getByRole('row', { name: 'quick' });
    await quick.waitFor();
    assert.equal(await page.getByRole('row', { name: 'endless' }).count(), 0);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Run of quick' }).waitFor();
    await page.goBack();
    await quick.waitFor();
    assert.ok(page.url().endsWith('/ui/runs?state=finished'));
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    const runAgain = page.getByRole('button', { name: 'Run 1 workflow again' });
    await runAgain.waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByRole('row', { name: 'endless' }).first().waitFor();
    // Clearing the filters also clears the selection.
    await runAgain.waitFor({ state: 'detached' });
  });

  browserTest('does not report an empty log before it is loaded', async ({ page }) => {
    const id = await queue('markup');
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    await page.clock.install();
    await page.route(/\/logs/, async (route) => {
      asked.resolve();
      await gate.promise;
      await route.continue();
    });
    await beginSession(page, service);
    await page.goto(`${service.url}/ui/runs/${id}`);
    await page.getByText('Failed', { exact: true }).first().waitFor();
    await asked.promise;
    // The page renders lines every 100 ms.
    await page.clock.fastForward(500);
    await page.getByRole('heading', { name: 'Log' }).waitFor();
    assert.equal(await page.getByText('No output').count(), 0);
    gate.resolve();
    const log = page.getByRole('region', { name: 'Log' }).first();
    await log.getByText(MARKUP, { exact: true }).waitFor();
  });

  browserTest('reconnects to a restarted server, and shows what happened in between', async ({ page, t }) => {
    const directory = await mkdtemp(join(tmpdir(), 'flowhook-restart-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const workflows = {
      'default/quick.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
    };
    const first = await startService({ directory, workflows });
    t.after(() => first.stop());
    await beginSession(page, first);
    await page.goto(`${first.url}/ui/runs`);
    await page.getByRole('button', { name: 'Live' }).waitFor();
    await first.stop();
    await page.getByRole('button', { name: 'Reconnecting' }).waitFor();
    await page.getByText('The service is not responding').waitFor();
    const settings = { FLOWHOOK_PORT: new URL(first.url).port };
    const second = await startService({ directory, workflows, settings });
    t.after(() => second.stop());
    await queue('quick', second);
    await page.getByRole('row', { name: 'quick' }).getByText('Finished').waitFor();
    await page.getByRole('button', { name: 'Live' }).waitFor();
  });
});
