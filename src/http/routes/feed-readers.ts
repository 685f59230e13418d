/** The public addresses of feeds, which need no key. */
import { Problem } from '../../model/error.ts';
import type { OpenedFeed } from '../../store/operations/feeds/addresses.ts';
import { digest, matchesTag } from '../caching.ts';
import { type FeedFormat, readAddress } from '../feeds/addresses.ts';
import { ATOM_TYPE, atomOf } from '../feeds/atom.ts';
import { asReaderSees, documentOf, firstShown } from '../feeds/changes.ts';
import type { FeedDocument } from '../feeds/document.ts';
import { JSON_FEED_TYPE, jsonFeedOf } from '../feeds/json-feed.ts';
import { PAGE_POLICY, PAGE_TYPE, pageOf } from '../feeds/page.ts';
import { acceptedEncoding } from '../negotiate.ts';
import { RETRY_AFTER, textContent } from '../openapi/content.ts';
import { type Call, type Operation, pathParameter } from '../route.ts';
import type { Request } from '../server/exchange.ts';

const FORMS: Readonly<Record<FeedFormat, { type: string; render(document: FeedDocument): string }>> = {
  atom: { type: ATOM_TYPE, render: atomOf },
  json: { type: JSON_FEED_TYPE, render: jsonFeedOf },
  html: { type: PAGE_TYPE, render: pageOf },
};

/** GET /feeds/{feedAddress} */
export const readFeedDocument: Operation<Call<'feedAddresses' | 'feedBodies' | 'examiner'>> = {
  id: 'readFeedDocument',
  open: true,
  group: 'Workflows',
  summary: 'Read the documents of a feed',
  description:
    'Needs no key: anyone who knows the address can read the feed. `{token}.atom` is Atom 1.0, `{token}.json` is JSON ' +
    'Feed 1.1, and `{token}` is a page for people, which browsers also get at the other two. `If-None-Match` and ' +
    '`If-Modified-Since` may return 304.',
  parameters: [pathParameter('feedAddress', 'Token of the feed, followed by `.atom`, `.json` or nothing')],
  answer: {
    description: 'The newest changes',
    headers: { ETag: { description: 'Entity tag of the content', schema: { type: 'string' } } },
    content: {
      'application/atom+xml': textContent('Atom 1.0 (RFC 4287)'),
      'application/feed+json': { schema: { type: 'object', description: 'JSON Feed 1.1' } },
      'text/html': textContent(),
    },
  },
  errors: {
    feed_not_found: 'No feed found',
    feed_ended: 'Feed revoked, or its address rotated',
    rate_limited: { description: 'Too many requests for this feed', headers: { 'retry-after': RETRY_AFTER } },
  },

  async handle({ services, params, request, reply }) {
    const { store, feedAddresses, feedBodies, examiner } = services;
    const address = readAddress(params.feedAddress);
    if (address === undefined) throw new Problem('feed_not_found');
    const { teamId, hash, token } = address;
    feedBodies.count(hash);
    const feed = await store.feeds.open({ teamId, hash });
    if (feed === undefined) throw new Problem('feed_not_found');
    if (feed === 'ended') throw new Problem('feed_ended');
    const format = isNavigation(request) ? 'html' : address.format;
    const now = store.now();
    const { publicUrl } = feedAddresses;
    const name = contentName(feed, { format, publicUrl, now });
    // Entries leave the window when its first day moves.
    const movedAt = firstShown(feed, now) + feed.windowMs;
    const modifiedAt = Math.max(feed.publishedAt ?? 0, feed.changedAt, movedAt);
    const encoding = acceptedEncoding(request.headers['accept-encoding']);
    reply.vary('accept-encoding', ...(address.format === 'html' ? [] : ['sec-fetch-mode']));
    reply.header('etag', `W/"${name}"`);
    // Something else may be published within the same second, and would have the same time.
    if (secondOf(modifiedAt) < secondOf(now))
      reply.header('last-modified', new Date(modifiedAt).toUTCString());
    if (isKnown(request, { name, modifiedAt, feed })) return reply.code(304).send();
    const { type, render } = FORMS[format];
    reply.type(type);
    if (format === 'html') reply.header('content-security-policy', PAGE_POLICY);
    if (encoding !== 'identity') reply.header('content-encoding', encoding);
    const of = { key: `${hash}.${format}`, name, teamId, workflowId: feed.workflowId, encoding };
    const bytes = await feedBodies
      .read(of, async () =>
        render(await documentOf({ store, examiner }, feed, feedAddresses.urlsWith(token))),
      )
      .catch((error: unknown) => {
        throw asReaderSees(error);
      });
    return reply.send(bytes);
  },
};

/** A browser that opens the address shows markup only as text, and offers JSON as a file. */
function isNavigation({ headers }: Request): boolean {
  return headers['sec-fetch-mode'] === 'navigate';
}

/** Names the content without reading it: it changes with the settings, versions, erasures, and the first day shown. */
function contentName(
  feed: OpenedFeed,
  { format, publicUrl, now }: { format: FeedFormat; publicUrl: string; now: number },
): string {
  const { id, revision, version, erasures, rewrites } = feed;
  return digest(
    JSON.stringify([id, revision, version, erasures, rewrites, firstShown(feed, now), format, publicUrl]),
  );
}

/**
 * Whether the client has the content already. A time does not show that something was erased, so after an erasure only
 * the tag counts.
 */
function isKnown(
  { headers }: Request,
  { name, modifiedAt, feed }: { name: string; modifiedAt: number; feed: OpenedFeed },
): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined) return matchesTag(tags, `"${name}"`);
  const since = Date.parse(headers['if-modified-since'] ?? '');
  return feed.erasures === 0 && feed.rewrites === 0 && since >= secondOf(modifiedAt) * 1_000;
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1_000);
}
