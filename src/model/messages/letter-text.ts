/** The plain text of a mail. */
import { changeWords, moreFieldsWords, moreWords } from './fitted.ts';
import { OPEN } from './letter-html.ts';
import type { Notice } from './notice.ts';
import type { NoticeRow } from './notice-row.ts';

export function letterText({
  title,
  summary,
  url,
  action = OPEN,
  facts,
  groups,
  log,
  footer,
  footerUrl,
}: Notice): string {
  const paragraphs = [
    [title, ...(summary === null ? [] : [summary])],
    facts.map(({ name, value }) => `${name}: ${value}`),
    ...groups.flatMap((group) => {
      const more = moreWords(group);
      return [
        ...(group.title === null ? [] : [[group.title]]),
        ...group.rows.map(rowLines),
        ...(more === null ? [] : [[more]]),
      ];
    }),
    log === null ? [] : ['Last lines of the log:', ...log.map((line) => `    ${line}`)],
    url === null ? [] : [`${action}: ${url}`],
    ['-- ', footer, ...(footerUrl === null ? [] : [`Change or pause it: ${footerUrl}`])],
  ];
  return paragraphs
    .filter((lines) => lines.length > 0)
    .map((lines) => `${lines.join('\n')}\n`)
    .join('\n');
}

function rowLines(row: NoticeRow): string[] {
  const { title, url, fields, moreFields } = row;
  const change = changeWords(row);
  const more = moreFieldsWords(moreFields);
  return [
    `* ${title}${change === '' ? '' : ` (${change})`}`,
    ...(url === null ? [] : [`  ${url}`]),
    ...fields.map(
      ({ key, before, after }) =>
        `  ${key}: ${[before, after].filter((side) => side !== null).join(' → ')}${after === null ? ' (removed)' : ''}`,
    ),
    ...(more === null ? [] : [`  ${more}`]),
  ];
}
