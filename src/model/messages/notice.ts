/** The form of a message for people, before it becomes a mail or a chat message. */
import type { Selection } from '../selection.ts';
import { type NoticeRow, noticeRow, type RowSource } from './notice-row.ts';

/** A message for people. All texts are plain, without line breaks and invisible characters, and have a maximum length. */
export interface Notice {
  tone: 'change' | 'failure' | 'warning' | 'info';
  title: string;
  /** At most two sentences. */
  summary: string | null;
  /** The page of the dashboard. */
  url: string | null;
  /** The label of the link to it (default: `Open in Flowhook`). */
  action?: string;
  facts: { name: string; value: string }[];
  /** At most `MAX_ROWS` rows in all. `more` counts those that are not listed. */
  groups: NoticeGroup[];
  /** The last log lines of a failed job. */
  log: string[] | null;
  /** Why the reader receives this. */
  footer: string;
  /** Where to change that. */
  footerUrl: string | null;
}

export interface NoticeGroup {
  title: string | null;
  rows: NoticeRow[];
  more: number;
}

/** Maximum number of rows of all groups. */
export const MAX_ROWS = 20;

/** The webhook that sends a message. The id is empty while a rule is tried. */
export interface Sender {
  id: string;
  name: string | null;
}

/** The parts of a notice that depend on the type of the event. */
export type NoticePart = Pick<Notice, 'tone' | 'title' | 'summary' | 'url' | 'facts'> &
  Partial<Pick<Notice, 'groups'>>;

/** An event, and what its notice is made with. */
export interface Noticed {
  type: string;
  workflowId: string | null;
  jobId: string | null;
  data: Record<string, unknown>;
  selection: Selection | null;
  time(value: unknown): string;
  /** The address of a page of the dashboard. */
  page(path: string): string;
}

/** The first rows of differences; `pageOf` returns the page of a record without an address. */
export function rowsOf(
  sources: readonly RowSource[],
  pageOf: (source: RowSource) => string,
  most = MAX_ROWS,
): NoticeRow[] {
  return sources.slice(0, most).map((source) => noticeRow(source, pageOf(source)));
}

/**
 * A text as a part of an address. Ids of records may contain halves of surrogate pairs, which addresses cannot, and
 * parentheses, which end a link in Markdown.
 */
export function inUrl(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*~]/g,
    (one) => `%${one.charCodeAt(0).toString(16)}`,
  );
}
