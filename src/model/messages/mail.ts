/** What a mail says. The stored body of a mail delivery is the JSON of a letter. */
import { fitted } from './fitted.ts';
import { letterHtml } from './letter-html.ts';
import { letterText } from './letter-text.ts';
import type { Notice } from './notice.ts';
import { cut } from './plain-text.ts';

export interface Letter {
  /** One line. */
  subject: string;
  text: string;
  html: string;
}

const MAX_SUBJECT = 150;
/** Some programs for mail show only the beginning of longer letters. */
const MAX_HTML_BYTES = 90_000;

export function letterOf(notice: Notice): Letter {
  return fitted(
    notice,
    (left) => ({ subject: cut(left.title, MAX_SUBJECT), text: letterText(left), html: letterHtml(left) }),
    ({ html }) => Buffer.byteLength(html) <= MAX_HTML_BYTES,
  );
}
