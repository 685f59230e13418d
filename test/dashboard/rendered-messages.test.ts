/** Hostile letters and cards in a real browser, which runs every script that it finds. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { Letter } from '../../src/model/messages/mail.ts';
import type { TeamsMessage } from '../../src/model/messages/teams.ts';
import { BROWSER_VARIABLE, hasBrowser, startChromium } from '../support/browser/chromium.ts';
import { catalogSamples, hostileSamples, messageText } from '../support/messages/samples.ts';

const SKIP =
  !hasBrowser && `no browser is installed: apt-get install chromium, or name one in ${BROWSER_VARIABLE}`;
const SAMPLES = [...catalogSamples(), ...hostileSamples()];
const OPS = { id: 'wh_1', name: '<b>Ops</b>' };

let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

/** A page, and what it does that a message must not: it loads, runs or asks something. */
async function newPage(): Promise<{ page: Page; events: string[] }> {
  browser ??= startChromium();
  const page = await (await browser).newPage();
  const events: string[] = [];
  page.on('request', (request) => events.push(request.url()));
  page.on('dialog', (dialog) => void dialog.dismiss().then(() => events.push(dialog.message())));
  page.on('pageerror', (error) => events.push(error.message));
  return { page, events };
}

test('a letter loads nothing and runs nothing, and is in the theme of the reader', {
  skip: SKIP,
}, async () => {
  const { page, events } = await newPage();
  const letters = SAMPLES.map((sample) => JSON.parse(messageText('mail', sample, OPS)) as Letter);
  for (const { html, subject } of letters) {
    await page.setContent(html);
    assert.equal(await page.locator('h1').innerText(), subject);
    assert.equal(await page.locator('script, img, iframe, link, object, form, b, i').count(), 0);
  }
  assert.deepEqual(events, []);
  const background = async (colorScheme: 'light' | 'dark') => {
    await page.emulateMedia({ colorScheme });
    return page.evaluate('getComputedStyle(document.querySelector(".card")).backgroundColor');
  };
  assert.equal(await background('light'), 'rgb(255, 255, 255)');
  assert.equal(await background('dark'), 'rgb(22, 27, 34)');
});

test('a card shows the texts of records as they are, even if Markdown may be any HTML', {
  skip: SKIP,
}, async () => {
  const { page, events } = await newPage();
  await page.setContent('<main></main>');
  const library = createRequire(import.meta.url).resolve('adaptivecards/dist/adaptivecards.min.js');
  await page.addScriptTag({ path: library });
  events.length = 0;
  for (const sample of SAMPLES) {
    const { content } = (JSON.parse(messageText('teams', sample, OPS)) as TeamsMessage).attachments[0] ?? {};
    assert.ok(content !== undefined);
    const shown = await page.evaluate(
      `(() => {
        AdaptiveCards.AdaptiveCard.onProcessMarkdown = (text, result) => {
          result.outputHtml = text;
          result.didProcess = true;
        };
        const card = new AdaptiveCards.AdaptiveCard();
        card.parse(${JSON.stringify({ ...content, actions: [] })});
        const main = document.querySelector('main');
        main.replaceChildren(card.render());
        return { text: main.textContent, odd: main.querySelectorAll('script, img, iframe, b, i, at').length };
      })()`,
    );
    const texts = content.body.flatMap(({ inlines }) =>
      inlines.map((inline) => (typeof inline === 'string' ? inline : inline.text)),
    );
    assert.deepEqual(shown, { text: texts.join(''), odd: 0 });
  }
  assert.deepEqual(events, []);
});
