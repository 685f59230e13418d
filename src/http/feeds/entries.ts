/** Turns the changes of versions into the entries of a feed. */
import { createHash } from 'node:crypto';
import type { Feed } from '../../model/messages/feed.ts';
import { type NoticeRow, noticeRow } from '../../model/messages/notice-row.ts';
import type { Selection } from '../../model/selection.ts';
import { countWords, grouped } from '../../std/amounts.ts';
import type { StoredEvent } from '../../store/operations/events.ts';
import type { FeedEntry } from './document.ts';
import { escaped } from './markup.ts';

/** A version with changes that the feed shows. */
export interface ShownVersion {
  event: StoredEvent;
  number: number;
  selection: Selection;
}

/** @param page the page of the feed, which shows every entry */
export function entriesOf(
  feed: Pick<Feed, 'id' | 'entries'>,
  { event, number, selection }: ShownVersion,
  page: string,
): FeedEntry[] {
  const at = event.createdAt;
  if (feed.entries === 'record') {
    return selection.differences.map((difference) => {
      const row = noticeRow(difference, null);
      const uuid = uuidOf(feed.id, event.id, difference.id);
      const title = `${WORDS[row.change]}: ${row.title}`;
      return {
        uuid,
        title,
        url: row.url ?? `${page}#${uuid}`,
        at,
        summary: summaryOf(row),
        html: tableOf(row),
      };
    });
  }
  const rows = selection.differences.map((difference) => noticeRow(difference, null));
  const more = selection.matched - rows.length;
  const rest = more > 0 ? [`and ${grouped(more)} more`] : [];
  const uuid = uuidOf(feed.id, event.id);
  return [
    {
      uuid,
      title: `Version ${number}: ${countWords(selection.matched, 'record')} changed`,
      url: `${page}#${uuid}`,
      at,
      summary: [...rows.map(({ change, title }) => `${WORDS[change]}: ${title}`), ...rest].join('; '),
      html: [...rows.map(sectionOf), ...rest.map((words) => `<p>${words}</p>`)].join(''),
    },
  ];
}

const WORDS: Readonly<Record<NoticeRow['change'], string>> = {
  added: 'Added',
  changed: 'Changed',
  removed: 'Removed',
  event: 'Event',
};

function summaryOf({ change, fields, moreFields }: NoticeRow): string {
  if (fields.length === 0) return `${WORDS[change]}`;
  const parts = fields.map(({ key, before, after }) => {
    if (before === null) return `${key}: ${after}`;
    return after === null ? `${key}: ${before}` : `${key}: ${before} → ${after}`;
  });
  return parts.join('; ') + (moreFields > 0 ? `; and ${countWords(moreFields, 'more field')}` : '');
}

function sectionOf(row: NoticeRow): string {
  const title = escaped(row.title);
  const link = row.url === null ? title : `<a href="${escaped(row.url)}">${title}</a>`;
  return `<h3>${WORDS[row.change]}: ${link}</h3>${tableOf(row)}`;
}

function tableOf({ change, fields, moreFields }: NoticeRow): string {
  if (fields.length === 0) return `<p>${WORDS[change]}</p>`;
  const isChange = change === 'changed';
  const head = isChange
    ? '<tr><th>Field</th><th>Before</th><th>After</th></tr>'
    : '<tr><th>Field</th><th>Value</th></tr>';
  const cell = (text: string | null) => `<td>${text === null ? '' : escaped(text)}</td>`;
  const rows = fields.map(
    ({ key, before, after }) =>
      `<tr><td>${escaped(key)}</td>${isChange ? cell(before) + cell(after) : cell(after ?? before)}</tr>`,
  );
  const more = moreFields > 0 ? `<p>and ${countWords(moreFields, 'more field')}</p>` : '';
  return `<table>${head}${rows.join('')}</table>${more}`;
}

/** A UUID (RFC 9562, version 8) that is the same whenever the same names are given. */
export function uuidOf(...names: readonly string[]): string {
  const bytes = createHash('sha256').update(JSON.stringify(names)).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return parts.join('-');
}
