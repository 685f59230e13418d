/**
 * The HTML of a mail: tables with inline styles, which programs for mail show alike, and no remote resource. Programs that
 * know `prefers-color-scheme` show it in the reader's theme.
 */
import { escapedHtml } from '../../std/escaped-html.ts';
import { changeWords, isGone, moreFieldsWords, moreWords } from './fitted.ts';
import type { Notice, NoticeGroup } from './notice.ts';
import type { NoticeRow } from './notice-row.ts';

const FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";
const MONO = 'font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace';
const TEXT = 'color:#1f2328';
const MUTED = 'color:#59636e';
const WRAP = 'overflow-wrap:anywhere;word-break:break-word';
const ACCENTS: Readonly<Record<Notice['tone'], string>> = {
  change: '#0969da',
  failure: '#cf222e',
  warning: '#9a6700',
  info: '#59636e',
};

/** The label of the link to the dashboard. */
export const OPEN = 'Open in Flowhook';

/** The place in the footer for links that only a sent mail has. Texts of records are escaped, so they cannot contain it. */
const MORE_LINKS = '<!-- links -->';

/** Adds a link to the footer of a letter. */
export function withFooterLink(html: string, link: { url: string; label: string }): string {
  return html.replace(MORE_LINKS, () => ` ·${footerLink(link.url, link.label)}`);
}

function footerLink(url: string, label: string): string {
  return ` <a class="muted" href="${escapedHtml(url)}" style="${MUTED};text-decoration:underline">${label}</a>`;
}

/** Inline styles are those of the light theme, so these need `!important`. */
const DARK = `
  .page { background-color: #0d1117 !important; }
  .card { background-color: #161b22 !important; border-right-color: #3d444d !important;
    border-bottom-color: #3d444d !important; border-left-color: #3d444d !important; }
  .text { color: #f0f6fc !important; }
  .muted { color: #9198a1 !important; }
  .line { border-color: #3d444d !important; }
  .link { color: #4493f8 !important; }
  .old { color: #ffb3ad !important; background-color: #3c1618 !important; }
  .new { color: #7ee787 !important; background-color: #12321c !important; }
  .log { background-color: #0d1117 !important; color: #f0f6fc !important; }
  .button { background-color: #1f6feb !important; }`;

export function letterHtml(notice: Notice): string {
  const { tone, title, summary, url, action = OPEN, facts, groups, log, footer, footerUrl } = notice;
  const parts = [
    `<h1 class="text" style="margin:0 0 8px;font-size:20px;line-height:28px;font-weight:600;${TEXT};${WRAP}">${escapedHtml(title)}</h1>`,
    ...(summary === null
      ? []
      : [
          `<p class="text" style="margin:0 0 12px;font-size:15px;line-height:22px;${TEXT};${WRAP}">${escapedHtml(summary)}</p>`,
        ]),
    ...(facts.length === 0 ? [] : [factTable(facts)]),
    ...groups.map(groupTable),
    ...(log === null ? [] : [logBlock(log)]),
    ...(url === null ? [] : [button(url, action)]),
  ];
  const change = footerUrl === null ? '' : footerLink(footerUrl, 'Change or pause it');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escapedHtml(title)}</title>
<style>
  :root { color-scheme: light dark; supported-color-schemes: light dark; }
  @media (prefers-color-scheme: dark) {${DARK}
  }
</style>
</head>
<body class="page" style="margin:0;padding:0;background-color:#f6f8fa">
<table class="page" role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background-color:#f6f8fa">
<tr><td align="center" style="padding:24px 12px">
<table class="card" role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:640px;background-color:#ffffff;border:1px solid #d1d9e0;border-top:4px solid ${ACCENTS[tone]};border-radius:6px">
<tr><td style="padding:24px;${FONT}">
${parts.join('\n')}
</td></tr>
</table>
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:640px">
<tr><td class="muted" style="padding:16px 24px;font-size:12px;line-height:18px;${MUTED};${FONT};${WRAP}">${escapedHtml(footer)}${change}${MORE_LINKS}</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
`;
}

function factTable(facts: Notice['facts']): string {
  const rows = facts.map(
    ({ name, value }) =>
      `<tr><td class="muted" valign="top" style="padding:2px 16px 2px 0;white-space:nowrap;${MUTED}">${escapedHtml(name)}</td>` +
      `<td class="text" dir="auto" style="padding:2px 0;${TEXT};${WRAP}">${escapedHtml(value)}</td></tr>`,
  );
  return `<table role="presentation" cellpadding="0" cellspacing="0" style="margin:0 0 8px;font-size:14px;line-height:20px">
${rows.join('\n')}
</table>`;
}

function groupTable(group: NoticeGroup): string {
  const heading =
    group.title === null
      ? ''
      : `<h2 class="text" style="margin:20px 0 0;font-size:16px;line-height:24px;font-weight:600;${TEXT};${WRAP}">${escapedHtml(group.title)}</h2>\n`;
  const more = moreWords(group);
  const end =
    more === null
      ? ''
      : `\n<p class="muted" style="margin:8px 0 0;font-size:14px;line-height:20px;${MUTED}">${escapedHtml(more)}</p>`;
  const rows = group.rows.flatMap(recordRows);
  if (rows.length === 0) return heading + end;
  return `${heading}<table width="100%" cellpadding="0" cellspacing="0" style="margin:12px 0 0;font-size:14px;line-height:20px;border-collapse:collapse">
${rows.join('\n')}
</table>${end}`;
}

function recordRows(row: NoticeRow): string[] {
  const { title, url, fields, moreFields } = row;
  const name =
    url === null
      ? `<strong class="text" style="${TEXT}">${escapedHtml(title)}</strong>`
      : `<a class="link" href="${escapedHtml(url)}" style="color:#0969da;font-weight:600;text-decoration:none">${escapedHtml(title)}</a>`;
  const more = moreFieldsWords(moreFields);
  return [
    `<tr><td class="line" colspan="3" dir="auto" style="padding:10px 0 4px;border-top:1px solid #d1d9e0;${WRAP}">${name} <span class="muted" style="${MUTED}">${changeWords(row)}</span></td></tr>`,
    ...fields.map((field) => fieldRow(row, field)),
    ...(more === null
      ? []
      : [
          `<tr><td class="muted" colspan="3" style="padding:0 0 6px;${MUTED}">${escapedHtml(more)}</td></tr>`,
        ]),
  ];
}

function fieldRow(row: NoticeRow, field: NoticeRow['fields'][number]): string {
  const { key, before, after } = field;
  const name = `<td class="muted" valign="top" width="26%" style="padding:0 12px 6px 0;${MUTED};${WRAP}">${escapedHtml(key)}</td>`;
  const old = (text: string) =>
    `<del class="old" style="color:#82071e;background-color:#ffebe9;text-decoration:${isGone(row, field) ? 'line-through' : 'none'}">${escapedHtml(text)}</del>`;
  const now = (text: string) =>
    `<ins class="new" style="color:#116329;background-color:#dafbe1;text-decoration:none">${escapedHtml(text)}</ins>`;
  const cell = (content: string, rest = '') =>
    `<td${rest} valign="top" dir="auto" style="padding:0 12px 6px 0;${WRAP}">${content}</td>`;
  if (before !== null && after !== null)
    return `<tr>${name}${cell(old(before), ' width="37%"')}${cell(now(after))}</tr>`;
  return `<tr>${name}${cell(before === null ? now(after ?? '') : old(before), ' colspan="2"')}</tr>`;
}

function logBlock(log: readonly string[]): string {
  const lines = log.map(escapedHtml).join('\n');
  return `<p class="muted" style="margin:16px 0 4px;font-size:14px;line-height:20px;${MUTED}">Last lines of the log</p>
<pre class="log" style="margin:0;padding:12px;font-size:12px;line-height:18px;white-space:pre-wrap;border-radius:6px;background-color:#f6f8fa;${TEXT};${MONO};${WRAP}">${lines}</pre>`;
}

function button(url: string, label: string): string {
  return `<table role="presentation" cellpadding="0" cellspacing="0" style="margin:20px 0 0"><tr>
<td class="button" style="border-radius:6px;background-color:#0969da"><a href="${escapedHtml(url)}" style="display:inline-block;padding:8px 16px;font-size:14px;line-height:20px;font-weight:600;color:#ffffff;text-decoration:none">${escapedHtml(label)}</a></td>
</tr></table>`;
}
