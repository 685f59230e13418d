/** Reads the changes that a feed shows, from the events of its workflow. */
import { Problem } from '../../model/error.ts';
import { ownTurn } from '../../std/fair-share.ts';
import type { OpenedFeed } from '../../store/operations/feeds/addresses.ts';
import type { Store } from '../../store/store.ts';
import type { Examiner } from '../../webhooks/rules/examiner.ts';
import type { FeedUrls } from './addresses.ts';
import type { FeedDocument } from './document.ts';
import { entriesOf, uuidOf } from './entries.ts';

const DAY_MS = 86_400_000;
/** Maximum number of pages of events that are searched for changes; each has up to 2,000 events. */
const MAX_PAGES = 50;
const EVENTS_PER_PAGE = 25;
/** Maximum number of differences that a filter examines for one document. */
const MAX_EXAMINED = 50_000;

/** The first moment that a feed shows. It moves once a day, so that a feed without changes stays the same for a day. */
export function firstShown({ windowMs }: Pick<OpenedFeed, 'windowMs'>, now: number): number {
  return Math.floor((now - windowMs) / DAY_MS) * DAY_MS;
}

/** Reads the changes that a feed shows. @throws Problem if its filter takes too long, or the service is overloaded */
export async function documentOf(
  { store, examiner }: { store: Pick<Store, 'events' | 'workflows' | 'now'>; examiner: Examiner },
  feed: OpenedFeed,
  urls: FeedUrls,
): Promise<FeedDocument> {
  const { teamId, workflowId, filter, most } = feed;
  const since = firstShown(feed, store.now());
  const lists = feed.entries === 'version' ? 'rows' : 'feed';
  const entries: FeedDocument['entries'] = [];
  let examined = 0;
  let before: string | null | undefined;
  for (let pages = 0; before !== null && pages < MAX_PAGES && entries.length < most; pages += 1) {
    const page: Awaited<ReturnType<Store['events']['history']>> = await store.events.history({
      teamId,
      workflowId,
      types: ['workflow_data_change'],
      since,
      limit: EVENTS_PER_PAGE,
      ...(before === undefined ? {} : { before }),
    });
    for (const event of page.events) {
      if (entries.length >= most || examined >= MAX_EXAMINED) break;
      const found = await examiner.selectDifferences({ teamId, event, filter, lists });
      examined += filter === null ? 0 : found.examined;
      if (found.selection === null) continue;
      const { version: number } = (JSON.parse(event.body) as { data: { version: number } }).data;
      entries.push(...entriesOf(feed, { event, number, selection: found.selection }, urls.html));
      await ownTurn(teamId);
    }
    before = examined >= MAX_EXAMINED ? null : page.next;
  }
  const title = feed.title ?? (await store.workflows.get({ teamId, id: workflowId }))?.definition.name;
  return {
    uuid: uuidOf(teamId, feed.id),
    title: title ?? workflowId,
    description: `Changes of ${workflowId}${filter === null ? '' : ' that match a filter'}`,
    urls,
    updatedAt: entries[0]?.at ?? feed.changedAt,
    entries: entries.slice(0, most),
  };
}

/** A filter that takes too long is the owner's mistake, and not the reader's. */
export function asReaderSees(error: unknown): unknown {
  if (!(error instanceof Problem) || error.code !== 'field_invalid') return error;
  return new Problem('overloaded', {
    sentence: 'The filter of this feed takes too long. Its owner must use simpler conditions',
    headers: { 'retry-after': '3600' },
  });
}
