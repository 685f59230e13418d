/** Reads the changes that a feed shows, from the events of its workflow. */
import { Problem } from '../../model/error.ts';
import { ownTurn } from '../../std/fair-share.ts';
import type { OpenedFeed } from '../../store/operations/feeds/addresses.ts';
import type { Store } from '../../store/store.ts';
import type { Examiner } from '../../webhooks/rules/examiner.ts';
import type { FeedUrls } from './addresses.ts';
import type { FeedDocument } from './document.ts';
import { entriesOf, type ShownVersion, uuidOf } from './entries.ts';

const DAY_MS = 86_400_000;
/** Maximum number of pages of events that are searched for changes; each has up to 2,000 events. */
const MAX_PAGES = 50;
const EVENTS_PER_PAGE = 25;
/** How long the changes for one document are searched for. After that, it has those found so far: the newest. */
const SEARCH_MS = 10_000;

/** The first moment that a feed shows. It moves once a day, so that a feed without changes stays the same for a day. */
export function firstShown({ windowMs }: Pick<OpenedFeed, 'windowMs'>, now: number): number {
  return Math.floor((now - windowMs) / DAY_MS) * DAY_MS;
}

/** @throws Problem `field_invalid` if the filter takes too long to find anything, `overloaded` */
export async function documentOf(
  deps: { store: Pick<Store, 'events' | 'workflows' | 'now'>; examiner: Examiner; searchMs?: number },
  feed: OpenedFeed,
  urls: FeedUrls,
): Promise<FeedDocument> {
  const { teamId, workflowId, filter, most } = feed;
  const entries: FeedDocument['entries'] = [];
  const deadline = performance.now() + (deps.searchMs ?? SEARCH_MS);
  try {
    for await (const found of changesOf(deps, feed, deadline)) {
      entries.push(...entriesOf(feed, found, urls.html));
      if (entries.length >= most) break;
    }
  } catch (error) {
    if (entries.length === 0 || performance.now() < deadline) throw error;
  }
  const title = feed.title ?? (await deps.store.workflows.get({ teamId, id: workflowId }))?.definition.name;
  return {
    uuid: uuidOf(teamId, feed.id),
    title: title ?? workflowId,
    description: `Changes of ${workflowId}${filter === null ? '' : ' that match a filter'}`,
    urls,
    updatedAt: entries[0]?.at ?? feed.changedAt,
    entries: entries.slice(0, most),
  };
}

/** The versions of a workflow with changes that match the filter, newest first. */
async function* changesOf(
  { store, examiner }: Pick<Parameters<typeof documentOf>[0], 'store' | 'examiner'>,
  feed: OpenedFeed,
  deadline: number,
): AsyncGenerator<ShownVersion> {
  const { teamId, workflowId, filter } = feed;
  const lists = feed.entries === 'version' ? 'rows' : 'feed';
  const sought = {
    teamId,
    workflowId,
    types: ['workflow_data_change'] as const,
    since: firstShown(feed, store.now()),
    limit: EVENTS_PER_PAGE,
  };
  let before: string | null | undefined;
  for (let pages = 0; before !== null && pages < MAX_PAGES; pages += 1) {
    const from = before === undefined ? {} : { before };
    const page: Awaited<ReturnType<Store['events']['history']>> = await store.events.history({
      ...sought,
      ...from,
    });
    for (const event of page.events) {
      const selection = await examiner.selectDifferences({ teamId, event, filter, lists, deadline });
      await ownTurn(teamId);
      if (selection === null) continue;
      const { version } = (JSON.parse(event.body) as { data: { version: number } }).data;
      yield { event, number: version, selection };
    }
    before = page.next;
  }
}

/** A filter that takes too long is the owner's mistake, and not the reader's. */
export function asReaderSees(error: unknown): unknown {
  if (!(error instanceof Problem) || error.code !== 'field_invalid') return error;
  return new Problem('overloaded', {
    sentence: 'The filter of this feed takes too long. Its owner must use simpler conditions',
    headers: { 'retry-after': '3600' },
  });
}
