/** The dashboard without a mouse: everything can be reached, shows its focus, and does not trap it. */
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import type { Page } from 'playwright-core';
import { signedInTests } from '../support/browser/browser.ts';
import { startService, type TestService } from '../support/service.ts';

/** Runs in the page: the name of the focused element, and whether its focus is visible. */
const FOCUS = `(() => {
  const { activeElement: element } = document;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const { width, height } = element.getBoundingClientRect();
  return {
    name: element.getAttribute('aria-label') ?? element.textContent ?? '',
    isBody: element === document.body,
    isSeen: width * height > 0 && ((outlineStyle !== 'none' && outlineWidth !== '0px') || element.matches('input')),
  };
})()`;

function focused(page: Page): Promise<{ name: string; isBody: boolean; isSeen: boolean }> {
  return page.evaluate(FOCUS);
}

describe('the dashboard without a mouse', () => {
  let service: TestService;
  before(async () => {
    service = await startService({
      workflows: {
        'default/alpha.yaml': `name: Alpha\nsource: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
        'default/beta.yaml': `name: Beta\nsource: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
      },
    });
  });
  after(() => service.stop());
  const pageTest = signedInTests(() => service);

  pageTest('finds, runs and opens a workflow with the keyboard', async ({ page, open }) => {
    await open('');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('w');
    await page.getByRole('heading', { name: 'Workflows' }).waitFor();
    assert.equal((await focused(page)).name, 'Workflows', 'the heading of a new page has the focus');
    await page.getByRole('row', { name: 'Beta' }).waitFor();

    await page.keyboard.press('/');
    await page.keyboard.type('beta');
    await page.getByRole('row', { name: 'Alpha' }).waitFor({ state: 'detached' });
    await page.keyboard.press('Tab');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Beta' }).waitFor();

    await page.getByRole('button', { name: 'Run now' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.getByRole('row', { name: 'beta' }).getByText('Finished').waitFor();
  });

  pageTest('opens pages by quick search, and shows all keyboard shortcuts', async ({ page, open }) => {
    await open('runs');
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    await page.keyboard.press('Control+K');
    await page.locator('[aria-label="Quick search"]:focus').waitFor();
    await page.keyboard.type('alpha');
    await page.getByRole('button', { name: 'Run Alpha' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Alpha' }).waitFor();

    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    for (const label of ['Go to Workflows', 'Next row', 'Quick search'])
      await help.getByText(label).waitFor();
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'detached' });
  });

  pageTest(
    'keeps the focus in a dialog, and returns it to the button that opened the dialog',
    async ({ page, open }) => {
      await open('webhooks');
      const opener = page.getByRole('button', { name: 'New webhook' }).first();
      await opener.focus();
      await page.keyboard.press('Enter');
      const dialog = page.getByRole('dialog', { name: 'New webhook' });
      await dialog.getByRole('textbox', { name: 'URL' }).waitFor();
      await page.locator('[role=dialog] :focus').waitFor();
      await page.evaluate('globalThis.begin = document.activeElement');
      // Tabs through the whole dialog once.
      for (let isBack = false, presses = 0; !isBack; presses++) {
        assert.ok(presses < 100, 'Tab returns to where it started');
        await page.keyboard.press('Tab');
        const [isInside, isBegin] = (await page.evaluate(
          `[document.activeElement.closest('[role=dialog]') !== null, document.activeElement === begin]`,
        )) as [boolean, boolean];
        assert.ok(isInside, 'the focus stays in the dialog');
        isBack = isBegin;
      }
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      await page.locator('button:focus', { hasText: 'New webhook' }).waitFor();
    },
  );

  pageTest('Tab reaches the whole page with a visible focus', async ({ page, open }) => {
    await open('workflows');
    await page.getByRole('row', { name: 'Beta' }).waitFor();
    // After a reload the browser starts at the top of the page.
    await page.reload();
    await page.getByRole('row', { name: 'Beta' }).waitFor();
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('Tab');
    assert.equal((await focused(page)).name, 'Skip to content');
    const seen: string[] = [];
    for (let presses = 0; presses < 60; presses++) {
      await page.keyboard.press('Tab');
      const { name, isSeen, isBody } = await focused(page);
      if (isBody) break;
      assert.ok(isSeen, `${name} shows that it has the focus`);
      seen.push(name);
    }
    for (const name of ['Workflows', 'Quick search', 'Beta'])
      assert.ok(
        seen.some((one) => one.includes(name)),
        `${name} is reached: ${seen.join(' · ')}`,
      );
  });
});
