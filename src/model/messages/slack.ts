/**
 * Messages for incoming webhooks of Slack (Block Kit). Texts of records are elements of rich text, in which Slack
 * interprets neither markup nor mentions.
 */
import { changeWords, fitted, isGone, moreFieldsWords, moreWords } from './fitted.ts';
import type { Notice } from './notice.ts';
import type { NoticeRow } from './notice-row.ts';
import { cut } from './plain-text.ts';

const MAX_BLOCKS = 50;
const MAX_TEXT = 3_000;
const MAX_HEADER = 150;
/**
 * Slack refuses messages of about 12,000 characters in all, without documenting what counts. This many characters of
 * texts and addresses are accepted.
 */
const MAX_CHARACTERS = 9_000;

interface Style {
  bold?: true;
  strike?: true;
}
type Element =
  | { type: 'text'; text: string; style?: Style }
  | { type: 'link'; url: string; text: string; style?: Style };
interface Section {
  type: 'rich_text_section';
  elements: Element[];
}
type RichPart =
  | Section
  | { type: 'rich_text_list'; style: 'bullet'; elements: Section[] }
  | { type: 'rich_text_preformatted'; elements: Element[] };
type Text =
  | { type: 'plain_text'; text: string; emoji: false }
  | { type: 'mrkdwn'; text: string; verbatim: true };
type Block =
  | { type: 'header'; text: Text & { type: 'plain_text' } }
  | { type: 'rich_text'; elements: RichPart[] }
  | { type: 'context'; elements: Text[] };

export interface SlackMessage {
  /** For notifications, and for programs that accept the webhooks of Slack but no blocks. */
  text: string;
  mrkdwn: false;
  blocks: Block[];
  unfurl_links: false;
  unfurl_media: false;
}

export function slackMessage(notice: Notice): SlackMessage {
  const blocks = fitted(notice, blocksOf, (made) => {
    return made.length <= MAX_BLOCKS && charactersOf(made) <= MAX_CHARACTERS;
  });
  const text = [notice.title, ...(notice.summary === null ? [] : [notice.summary])].join('\n');
  return {
    text: cut(escaped(text), MAX_TEXT),
    mrkdwn: false,
    blocks,
    unfurl_links: false,
    unfurl_media: false,
  };
}

function blocksOf(notice: Notice): Block[] {
  const { title, summary, facts, url, groups, log, footer, footerUrl } = notice;
  const about = [
    ...(summary === null ? [] : [text(`${summary}\n`)]),
    ...facts.flatMap(({ name, value }) => [text(`${name}: `), text(value, { bold: true }), text('\n')]),
    ...(url === null ? [] : [link(url, 'Open in Flowhook')]),
  ];
  return [
    { type: 'header', text: plain(cut(title, MAX_HEADER)) },
    ...(about.length === 0 ? [] : [rich(section(...about))]),
    ...groups.flatMap((group): Block[] => {
      const more = moreWords(group);
      return [
        ...(group.title === null ? [] : [rich(section(text(group.title, { bold: true })))]),
        ...group.rows.map(rowBlock),
        ...(more === null ? [] : [rich(section(text(more)))]),
      ];
    }),
    ...(log === null
      ? []
      : [rich({ type: 'rich_text_preformatted' as const, elements: log.map((line) => text(`${line}\n`)) })]),
    {
      type: 'context',
      elements: [
        plain(footer),
        ...(footerUrl === null
          ? []
          : [
              {
                type: 'mrkdwn' as const,
                text: `<${escaped(footerUrl)}|Change or pause it>`,
                verbatim: true as const,
              },
            ]),
      ],
    },
  ];
}

function rowBlock(row: NoticeRow): Block {
  const { title, url, fields, moreFields } = row;
  const name = url === null ? text(title, { bold: true }) : link(url, title, { bold: true });
  const change = changeWords(row);
  const more = moreFieldsWords(moreFields);
  const items = [
    ...fields.map((field) => fieldItem(row, field)),
    ...(more === null ? [] : [section(text(more))]),
  ];
  return rich(
    section(name, ...(change === '' ? [] : [text(` ${change}`)])),
    ...(items.length === 0
      ? []
      : [{ type: 'rich_text_list' as const, style: 'bullet' as const, elements: items }]),
  );
}

function fieldItem(row: NoticeRow, field: NoticeRow['fields'][number]): Section {
  const { key, before, after } = field;
  return section(
    text(`${key}: `),
    ...(before === null ? [] : [text(before, isGone(row, field) ? { strike: true } : undefined)]),
    ...(before === null || after === null ? [] : [text(' → ')]),
    ...(after === null ? [] : [text(after)]),
  );
}

function rich(...elements: RichPart[]): Block {
  return { type: 'rich_text', elements };
}

function section(...elements: Element[]): Section {
  return { type: 'rich_text_section', elements };
}

function text(value: string, style?: Style): Element {
  return { type: 'text', text: value, ...(style === undefined ? {} : { style }) };
}

function link(url: string, value: string, style?: Style): Element {
  return { type: 'link', url, text: value, ...(style === undefined ? {} : { style }) };
}

function plain(value: string): Text & { type: 'plain_text' } {
  return { type: 'plain_text', text: value, emoji: false };
}

/**
 * Neutralizes the markup of Slack, and that of programs that read its messages as Markdown. A character without width
 * keeps names after `@` from being notified.
 */
function escaped(value: string): string {
  return value
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(/[@*~`]/g, '$&\u200b');
}

/** The number of characters of all texts and addresses. */
function charactersOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.entries(value).reduce((sum, [key, one]) => sum + (key === 'type' ? 0 : charactersOf(one)), 0);
}
