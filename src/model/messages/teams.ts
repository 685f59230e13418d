/**
 * Messages for webhooks of Microsoft Teams: an Adaptive Card. Texts of records are runs of rich text, in which Markdown is
 * not interpreted.
 */
import { changeWords, fitted, isGone, moreFieldsWords, moreWords } from './fitted.ts';
import type { Notice } from './notice.ts';
import type { NoticeRow } from './notice-row.ts';

/** Teams refuses messages of more than 28 KB. */
const MAX_BYTES = 27_000;

const COLORS: Readonly<Record<Notice['tone'], 'Accent' | 'Attention' | 'Warning' | 'Default'>> = {
  change: 'Accent',
  failure: 'Attention',
  warning: 'Warning',
  info: 'Default',
};

interface OpenUrl {
  type: 'Action.OpenUrl';
  title?: string;
  url: string;
}

interface Run {
  type: 'TextRun';
  text: string;
  size?: 'Large' | 'Small';
  weight?: 'Bolder';
  color?: string;
  isSubtle?: true;
  strikethrough?: true;
  fontType?: 'Monospace';
  selectAction?: OpenUrl;
}

interface Line {
  type: 'RichTextBlock';
  inlines: (Run | string)[];
  spacing?: 'None' | 'Small' | 'Medium';
  separator?: true;
}

export interface TeamsMessage {
  type: 'message';
  attachments: {
    contentType: 'application/vnd.microsoft.card.adaptive';
    contentUrl: null;
    content: {
      $schema: 'http://adaptivecards.io/schemas/adaptive-card.json';
      type: 'AdaptiveCard';
      version: '1.5';
      msteams: { width: 'Full' };
      fallbackText: string;
      body: Line[];
      actions: OpenUrl[];
    };
  }[];
}

export function teamsMessage(notice: Notice): TeamsMessage {
  return fitted(notice, messageOf, (made) => Buffer.byteLength(JSON.stringify(made)) <= MAX_BYTES);
}

function messageOf(notice: Notice): TeamsMessage {
  const { title, url, footerUrl } = notice;
  const actions = [
    ...(url === null ? [] : [openUrl(url, 'Open in Flowhook')]),
    ...(footerUrl === null ? [] : [openUrl(footerUrl, 'Change or pause this webhook')]),
  ];
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.5',
    msteams: { width: 'Full' },
    fallbackText: literal(title),
    body: linesOf(notice),
    actions,
  } as const;
  const contentType = 'application/vnd.microsoft.card.adaptive';
  return { type: 'message', attachments: [{ contentType, contentUrl: null, content }] };
}

function linesOf({ tone, title, summary, facts, groups, log, footer }: Notice): Line[] {
  return [
    line([run(title, { size: 'Large', weight: 'Bolder', color: COLORS[tone] })]),
    ...(summary === null ? [] : [line([run(summary)], 'Small')]),
    ...facts.map(({ name, value }) => line([run(`${name}: `, { isSubtle: true }), run(value)], 'None')),
    ...groups.flatMap((group) => {
      const more = moreWords(group);
      return [
        ...(group.title === null
          ? []
          : [{ ...line([run(group.title, { weight: 'Bolder' })]), separator: true as const }]),
        ...group.rows.flatMap(rowLines),
        ...(more === null ? [] : [line([run(more, { isSubtle: true })], 'Medium')]),
      ];
    }),
    ...(log ?? []).map((text, place) =>
      line([run(text, { fontType: 'Monospace', size: 'Small' })], place === 0 ? 'Medium' : 'None'),
    ),
    { ...line([run(footer, { isSubtle: true, size: 'Small' })], 'Medium'), separator: true },
  ];
}

function rowLines(row: NoticeRow): Line[] {
  const { title, url, fields, moreFields } = row;
  const change = changeWords(row);
  const more = moreFieldsWords(moreFields);
  const link = url === null ? {} : { selectAction: openUrl(url) };
  return [
    line([
      run(title, { weight: 'Bolder', ...link }),
      ...(change === '' ? [] : [run(` ${change}`, { isSubtle: true as const })]),
    ]),
    ...fields.map((field) => fieldLine(row, field)),
    ...(more === null ? [] : [line([run(more, { isSubtle: true })], 'None')]),
  ];
}

function fieldLine(row: NoticeRow, field: NoticeRow['fields'][number]): Line {
  const { key, before, after } = field;
  return line(
    [
      run(`${key}: `, { isSubtle: true }),
      ...(before === null ? [] : [run(before, isGone(row, field) ? { strikethrough: true } : {})]),
      ...(before === null || after === null ? [] : [run(' → ')]),
      ...(after === null ? [] : [run(after)]),
    ],
    'None',
  );
}

function line(inlines: Run[], spacing?: NonNullable<Line['spacing']>): Line {
  // A text without a style is written as a string, which is shorter.
  const short = inlines.map((one) => (Object.keys(one).length === 2 ? one.text : one));
  return { type: 'RichTextBlock', inlines: short, ...(spacing === undefined ? {} : { spacing }) };
}

function run(text: string, style: Partial<Omit<Run, 'type' | 'text'>> = {}): Run {
  return { type: 'TextRun', text: literal(text), ...style };
}

function openUrl(url: string, title?: string): OpenUrl {
  return { type: 'Action.OpenUrl', ...(title === undefined ? {} : { title }), url };
}

/** Cards replace `{{DATE(…)}}` and `{{TIME(…)}}`. A character without width between the braces prevents that. */
function literal(text: string): string {
  return text.replace(/\{(?=\{)/g, '{\u200b');
}
