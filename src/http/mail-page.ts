/** The pages behind the links in mails. They need no script and load nothing. */
import { createHash } from 'node:crypto';
import { escapedHtml } from '../std/escaped-html.ts';
import type { Call } from './route.ts';

const STYLE =
  ':root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif } ' +
  'main { margin: 15vh auto; max-width: 34rem; padding: 0 1rem; overflow-wrap: anywhere } ' +
  'button { font: inherit; font-weight: 600; padding: .5rem 1.25rem; border: 0; border-radius: 6px; ' +
  'background: #0969da; color: #fff; cursor: pointer }';

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Sends a page.
 *
 * @param page.button the label of a button that sends a POST request to the same address; undefined for none. Programs
 *   that check the links in mails follow them with GET, so a GET changes nothing
 * @param page.status default: 200
 */
export function sendMailPage(
  { reply }: Pick<Call, 'reply'>,
  page: { title: string; text: string; button?: string | undefined; status?: number },
): unknown {
  const { title, text, button, status = reply.statusCode } = page;
  const form =
    button === undefined
      ? ''
      : `\n<form method="post"><button type="submit">${escapedHtml(button)}</button></form>`;
  return reply
    .code(status)
    .headers({
      'cache-control': 'no-store',
      'content-security-policy': POLICY,
      // The address of the page is a secret.
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex, nofollow',
    })
    .type('text/html; charset=utf-8')
    .send(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>${escapedHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body><main>
<h1>${escapedHtml(title)}</h1>
<p>${escapedHtml(text)}</p>${form}
</main></body>
</html>
`);
}
