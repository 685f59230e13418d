/** Shortens a notice until the message that is made from it fits. */
import { grouped } from '../../std/amounts.ts';
import type { Notice } from './notice.ts';
import type { NoticeRow } from './notice-row.ts';

/** Returns the longest message that fits; the last rows, then log lines, then the summary are left out. */
export function fitted<Made>(
  notice: Notice,
  make: (notice: Notice) => Made,
  fits: (made: Made) => boolean,
): Made {
  let left: Notice | undefined = notice;
  for (;;) {
    const made = make(left);
    left = fits(made) ? undefined : shorter(left);
    if (left === undefined) return made;
  }
}

function shorter(notice: Notice): Notice | undefined {
  const last = notice.groups.findLastIndex(({ rows }) => rows.length > 0);
  if (last !== -1) {
    const groups = notice.groups.map((group, place) =>
      place === last ? { ...group, rows: group.rows.slice(0, -1), more: group.more + 1 } : group,
    );
    return { ...notice, groups };
  }
  if (notice.log !== null) {
    const log = notice.log.slice(Math.max(1, notice.log.length >> 1));
    return { ...notice, log: log.length === 0 ? null : log };
  }
  if (notice.summary !== null) return { ...notice, summary: null };
  return notice.facts.length === 0 ? undefined : { ...notice, facts: notice.facts.slice(1) };
}

/** The line about rows that are not listed; null if there are none. */
export function moreWords({ rows, more }: Notice['groups'][number]): string | null {
  if (more === 0) return null;
  const count = grouped(more);
  return rows.length === 0 ? `${count} not listed` : `and ${count} more`;
}

/** The line about fields that are not listed; null if there are none. */
export function moreFieldsWords(more: number): string | null {
  return more === 0 ? null : `and ${more} more ${more === 1 ? 'field' : 'fields'}`;
}

/** What a row says about its record besides the title; empty for an event of a digest. */
export function changeWords({
  change,
  fields,
  moreFields,
}: Notice['groups'][number]['rows'][number]): string {
  if (change === 'event') return '';
  return change === 'changed' && fields.length + moreFields === 0 ? 'as before' : change;
}

/** Whether a value is gone, although its record is not. Only such values are struck out: digits are hard to read then. */
export function isGone(row: NoticeRow, { after }: NoticeRow['fields'][number]): boolean {
  return after === null && row.change !== 'removed';
}
