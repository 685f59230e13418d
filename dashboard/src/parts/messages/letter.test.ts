/** Tests how the HTML of a mail is prepared for a frame. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { letterPage } from './letter.ts';

const HTML = `<!doctype html><html><head><style>@media (prefers-color-scheme: dark) { p { color: white !important } }</style></head>
<body style="margin:0"><p class="a" style="font-family:'A B',&quot;C&quot;">one</p><p style="margin:0">style="two"</p></body></html>`;

test('turns style attributes into rules of a style sheet with the nonce', () => {
  const page = letterPage(HTML, { nonce: 'n1', scheme: 'light' });
  assert.doesNotMatch(page, /<[^>]*\sstyle="/);
  assert.match(
    page,
    /<body data-look="0"><p class="a" data-look="1">one<\/p><p data-look="0">style="two"<\/p>/,
  );
  assert.match(page, /\[data-look="0"\]\{margin:0\}\[data-look="1"\]\{font-family:'A B',"C"\}/);
  assert.equal(page.match(/<style nonce="n1">/g)?.length, 2);
});

test('follows the theme of the dashboard, not that of the system', () => {
  assert.match(letterPage(HTML, { nonce: '', scheme: 'dark' }), /@media all \{ p/);
  assert.match(letterPage(HTML, { nonce: '', scheme: 'light' }), /@media not all \{ p/);
});

test('lets no style end its rule or the style sheet, and opens links in a new tab', () => {
  const page = letterPage('<p style="color:red}</style><script>">a</p>', { nonce: '', scheme: 'light' });
  assert.match(page, /\{color:red\/stylescript\}/);
  assert.match(page, /^<base target="_blank">/);
});
