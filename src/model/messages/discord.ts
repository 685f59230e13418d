/** Messages for webhooks of Discord. Nobody is ever mentioned, and no Markdown of a record is interpreted. */
import { escapedMarkdown as escaped } from './discord-markdown.ts';
import { changeWords, fitted, isGone, moreFieldsWords, moreWords } from './fitted.ts';
import type { Notice, NoticeGroup } from './notice.ts';
import type { NoticeRow } from './notice-row.ts';
import { cut, cutEscaped } from './plain-text.ts';

const MAX_EMBEDS = 10;
const MAX_FIELDS = 25;
const MAX_TITLE = 256;
const MAX_DESCRIPTION = 4_096;
const MAX_NAME = 256;
const MAX_VALUE = 1_024;
const MAX_FOOTER = 2_048;
/** Of all texts of all embeds. */
const MAX_CHARACTERS = 6_000;

const COLORS: Readonly<Record<Notice['tone'], number>> = {
  change: 0x0969da,
  failure: 0xcf222e,
  warning: 0xbf8700,
  info: 0x6e7781,
};

interface Field {
  name: string;
  value: string;
  inline: boolean;
}

interface Embed {
  title?: string;
  url?: string;
  description?: string;
  color: number;
  fields: Field[];
  footer?: { text: string };
}

export interface DiscordMessage {
  embeds: Embed[];
  allowed_mentions: { parse: [] };
}

export function discordMessage(notice: Notice): DiscordMessage {
  return fitted(
    notice,
    (left) => ({ embeds: embedsOf(left), allowed_mentions: { parse: [] } }),
    ({ embeds }) =>
      embeds.length <= MAX_EMBEDS &&
      embeds.every(
        ({ fields, description = '' }) =>
          fields.length <= MAX_FIELDS && description.length <= MAX_DESCRIPTION,
      ) &&
      embeds.reduce((sum, embed) => sum + charactersOf(embed), 0) <= MAX_CHARACTERS,
  );
}

function embedsOf(notice: Notice): Embed[] {
  const { tone, title, summary, url, facts, groups, log, footer, footerUrl } = notice;
  const color = COLORS[tone];
  const paragraphs = [
    ...(summary === null ? [] : [escaped(summary)]),
    // A fence cannot be closed by a line of the log, whose backticks are replaced by another character.
    ...(log === null ? [] : ['```\n'.concat(log.join('\n').replaceAll('`', '\u02cb'), '\n```')]),
    ...(footerUrl === null ? [] : [`[Change or pause this webhook](${footerUrl})`]),
  ];
  const description = paragraphs.join('\n');
  const main: Embed = {
    title: cutEscaped(title, MAX_TITLE, escaped),
    ...(url === null ? {} : { url }),
    ...(description === '' ? {} : { description }),
    color,
    fields: facts.map(({ name, value }) =>
      fieldOf(escaped(name), cutEscaped(value, MAX_VALUE, escaped), true),
    ),
    footer: { text: cut(footer, MAX_FOOTER) },
  };
  const embeds = groups.map((group) => groupEmbed(group, color));
  // A group without a title belongs to the first embed.
  const [first] = embeds;
  if (groups[0]?.title !== null || first === undefined) return [main, ...embeds];
  return [{ ...main, fields: [...main.fields, ...first.fields] }, ...embeds.slice(1)];
}

function groupEmbed(group: NoticeGroup, color: number): Embed {
  const more = moreWords(group);
  const rows = group.rows.map(rowField);
  return {
    ...(group.title === null ? {} : { title: cutEscaped(group.title, MAX_TITLE, escaped) }),
    color,
    fields: more === null ? rows : [...rows, fieldOf(NOTHING, more, false)],
  };
}

/** Discord requires names and values. This character has no width. */
const NOTHING = '\u200b';

function rowField(row: NoticeRow): Field {
  const change = changeWords(row);
  const title = cutEscaped(row.title, MAX_NAME - change.length - 3, escaped);
  const more = moreFieldsWords(row.moreFields);
  const lines = [...row.fields.map((field) => fieldLine(row, field)), ...(more === null ? [] : [more])];
  const open = row.url === null ? [] : [`[Open](${row.url})`];
  return fieldOf(change === '' ? title : `${title} · ${change}`, withinValue([...open, ...lines]), false);
}

/** The first lines that fit into a field, which are whole, so that no markup stays open. */
function withinValue(lines: readonly string[]): string {
  let length = 0;
  const over = lines.findIndex((line) => {
    length += line.length + 1;
    return length > MAX_VALUE - 2;
  });
  return over === -1 ? lines.join('\n') : [...lines.slice(0, over), '…'].join('\n');
}

const MAX_SIDE = 400;

function fieldLine(row: NoticeRow, field: NoticeRow['fields'][number]): string {
  const { key, before, after } = field;
  const [old, now] = [before, after].map((side) =>
    side === null ? null : cutEscaped(side, MAX_SIDE, escaped),
  );
  const sides = [
    ...(old == null ? [] : [isGone(row, field) ? `~~${old}~~` : old]),
    ...(now == null ? [] : [now]),
  ];
  return `${escaped(key)}: ${sides.join(' → ')}`;
}

function fieldOf(name: string, value: string, inline: boolean): Field {
  return { name: name === '' ? NOTHING : name, value: value === '' ? NOTHING : value, inline };
}

function charactersOf({ title = '', description = '', fields, footer }: Embed): number {
  const ofFields = fields.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
  return title.length + description.length + ofFields + (footer?.text.length ?? 0);
}
