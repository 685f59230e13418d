/** A feed, as the API returns it. */
import { FEED_ENTRIES, FEED_LIMIT, type Feed } from '../model/messages/feed.ts';
import { durationText } from '../model/rule.ts';
import { choice, integer, named, nullable, object, text, time } from '../std/shape.ts';
import { FEED_TOKEN, IDS, QUEUED } from './examples.ts';

const URL_OF = `http://127.0.0.1:8080/feeds/${FEED_TOKEN}`;

export const feedResource = named(
  'Feed',
  object({
    id: text(),
    workflowId: text(),
    title: nullable(text('Title for readers. `null`: the name of the workflow')),
    filter: nullable(text('Expression that selects the changes. `null`: all changes')),
    entries: choice(FEED_ENTRIES, 'Whether each entry is about a changed record, or about a version'),
    window: text('Time that the feed reaches back, in whole days, such as `30d`'),
    limit: integer('Maximum number of entries', { minimum: FEED_LIMIT.least, maximum: FEED_LIMIT.most }),
    urls: nullable(
      object({
        atom: text('Address of the feed as Atom 1.0'),
        json: text('Address of the feed as JSON Feed 1.1'),
        html: text('Address of the page for people'),
      }),
    ),
    createdAt: time(),
    changedAt: time('Time of the last change of the settings'),
  }),
  {
    id: IDS.feed,
    workflowId: IDS.workflow,
    title: null,
    filter: null,
    entries: 'record',
    window: '30d',
    limit: 50,
    urls: { atom: `${URL_OF}.atom`, json: `${URL_OF}.json`, html: URL_OF },
    createdAt: QUEUED,
    changedAt: QUEUED,
  },
);

/** @param urls null if the address cannot be decrypted, because the encryption key has changed */
export function shownFeed(
  { windowMs, most, ...feed }: Feed,
  urls: { atom: string; json: string; html: string } | null,
) {
  return feedResource.of({ ...feed, window: durationText(windowMs), limit: most, urls });
}
