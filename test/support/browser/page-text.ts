/** Finds text that no page of the dashboard may show: raw times, backticks, and times that are cut off. */
import type { Page } from 'playwright-core';

/**
 * Runs in the page. Ignores code, logs, headers and input fields. Ignores truncated times in an element with a title,
 * because the title has the whole text.
 */
const FINDINGS = `(() => {
  const found = [];
  const page = document.querySelector('#page') ?? document.body;
  const texts = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode()) !== null; ) {
    const { parentElement: around, data } = text;
    if (around.closest('style, pre, code, textarea, [role="group"], table[aria-label$="eaders"]') !== null) continue;
    if (/\\d{4}-\\d\\d-\\d\\dT\\d\\d:/.test(data)) found.push('a raw time: ' + data);
    if (data.includes('\\u0060')) found.push('a backtick: ' + data);
    if (/\\bsince (\\d+ \\w+ ago|just now|in )/.test(around.closest('p, span, div, li')?.textContent))
      found.push('since … ago: ' + data);
  }
  for (const time of page.querySelectorAll('time')) {
    const { left, right, width } = time.getBoundingClientRect();
    if (width === 0 || time.parentElement.closest('[title]') !== null) continue;
    for (let around = time.parentElement; around !== page && around !== null; around = around.parentElement) {
      if (!/hidden|clip/.test(getComputedStyle(around).overflowX)) continue;
      const box = around.getBoundingClientRect();
      if (left >= box.left - 1 && right <= box.right + 1) continue;
      found.push('a time that is cut off: ' + time.textContent);
      break;
    }
  }
  return [...new Set(found)];
})()`;

/** Returns one line per finding. */
export async function textFindings(page: Page): Promise<string[]> {
  return page.evaluate(FINDINGS);
}
