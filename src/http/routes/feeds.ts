/** The feeds of a workflow: their settings and addresses. */

import { found, Problem } from '../../model/error.ts';
import {
  FEED_ENTRIES,
  FEED_LIMIT,
  FEED_WINDOW,
  type Feed,
  type FeedSettings,
  MAX_FEED_TITLE,
  MAX_FEEDS,
} from '../../model/messages/feed.ts';
import { durationText, MAX_EXPRESSION } from '../../model/rule.ts';
import { messageResource } from '../../resources/error.ts';
import { feedResource, shownFeed } from '../../resources/feed.ts';
import { parseDuration } from '../../std/amounts.ts';
import { list, object } from '../../std/shape.ts';
import { checkIfMatch, IF_MATCH, sendWithETag } from '../caching.ts';
import { bodyFields } from '../input/body.ts';
import {
  IDEMPOTENCY_KEY,
  invalid,
  keyOfFields,
  keyOfPath,
  oneOf,
  wholeFrom,
  workflowIdFrom,
} from '../input/values.ts';
import { jsonBody, jsonResponse, messageWith } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

type FeedCall = KeyedCall<'feedAddresses'>;

const workflow = pathParameter('workflowId', 'Workflow ID');
const parameters = [workflow, pathParameter('feedId', 'Feed ID')];
const errors = { feed_not_found: 'No feed found' };
const changed = messageWith('feed', feedResource);

const DEFAULTS: FeedSettings = {
  title: null,
  filter: null,
  entries: 'record',
  windowMs: FEED_WINDOW.usualMs,
  most: FEED_LIMIT.usual,
};

const settings = {
  title: {
    type: ['string', 'null'],
    minLength: 1,
    maxLength: MAX_FEED_TITLE,
    description: 'Title for readers. `null`: the name of the workflow',
  },
  filter: {
    type: ['string', 'null'],
    minLength: 1,
    maxLength: MAX_EXPRESSION,
    description:
      'Expression in the Common Expression Language that selects the changes, as in webhooks. `null` for all changes',
    examples: ['fallsBy(previous.price, record.price, "5%")'],
  },
  entries: {
    enum: FEED_ENTRIES,
    description: 'Whether each entry is about a changed record, or about a version',
  },
  window: {
    type: 'string',
    pattern: '^\\d{1,3}d$',
    description: 'Time that the feed reaches back, from `1d` to `365d`, as far as events are kept',
    examples: ['30d'],
  },
  limit: {
    type: 'integer',
    minimum: FEED_LIMIT.least,
    maximum: FEED_LIMIT.most,
    description: 'Maximum number of entries',
  },
};

/** GET /v1/workflows/{workflowId}/feeds */
export const listFeeds: Operation<FeedCall> = {
  id: 'listFeeds',
  group: 'Workflows',
  summary: 'List feeds of a workflow',
  description: 'Returns all feeds of the workflow with their addresses, oldest first.',
  parameters: [workflow],
  answer: jsonResponse('All feeds', object({ feeds: list(feedResource) })),
  errors: { workflow_not_found: 'No workflow found' },

  async handle(call) {
    const at = workflowOf(call);
    const { store } = call.services;
    found(await store.workflows.get({ teamId: at.teamId, id: at.workflowId }), 'workflow_not_found');
    return { feeds: (await store.feeds.list(at)).map((feed) => shown(call, feed)) };
  },
};

/** POST /v1/workflows/{workflowId}/feeds */
export const createFeed: Operation<FeedCall> = {
  id: 'createFeed',
  group: 'Workflows',
  summary: 'Create a feed',
  description:
    'Creates secret addresses at which feed readers find the changes of the workflow, as Atom 1.0 and JSON Feed 1.1. ' +
    `Anyone who has such an address can read the feed. Limit: ${MAX_FEEDS} per workflow.`,
  parameters: [workflow, IDEMPOTENCY_KEY],
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        title: { ...settings.title, default: DEFAULTS.title },
        filter: { ...settings.filter, default: DEFAULTS.filter },
        entries: { ...settings.entries, default: DEFAULTS.entries },
        window: { ...settings.window, default: durationText(DEFAULTS.windowMs) },
        limit: { ...settings.limit, default: DEFAULTS.most },
      },
    },
    { required: false },
  ),
  answer: jsonResponse('Feed created', feedResource, { location: 'URL of the feed in this API' }),
  errors: {
    field_invalid: 'A field is not valid, or the workflow has reached its limit of feeds',
    workflow_not_found: 'No workflow found',
    idempotency_key_reused: '`idempotency-key` already used with a different body',
  },

  async handle(call) {
    const { store, feedAddresses } = call.services;
    const at = workflowOf(call);
    const fields = await bodyFields(call);
    const made = await store.feeds.create({
      ...at,
      ...DEFAULTS,
      ...(await settingsFrom(fields)),
      token: feedAddresses.newToken(at.teamId),
      idempotencyKey: keyOfFields(call, fields),
    });
    if (made.outcome === 'not_found') throw new Problem('workflow_not_found');
    if (made.outcome === 'full') {
      throw new Problem('feed_limit', {
        sentence: `The workflow has reached its limit of ${MAX_FEEDS} feeds. Revoke one first`,
      });
    }
    const feed = found(made.feed, 'feed_not_found');
    call.reply.header('location', `/v1/workflows/${encodeURIComponent(feed.workflowId)}/feeds/${feed.id}`);
    return shown(call, feed);
  },
};

/** GET /v1/workflows/{workflowId}/feeds/{feedId} */
export const readFeed: Operation<FeedCall> = {
  id: 'readFeed',
  group: 'Workflows',
  etag: true,
  summary: 'Read a feed',
  description: 'Returns the settings and the addresses of a feed.',
  parameters,
  answer: jsonResponse('Feed', feedResource),
  errors,

  async handle(call) {
    const feed = await feedOf(call);
    return sendWithETag(call, JSON.stringify(shown(call, feed)), settingsOf(feed));
  },
};

/** PATCH /v1/workflows/{workflowId}/feeds/{feedId} */
export const updateFeed: Operation<FeedCall> = {
  id: 'updateFeed',
  group: 'Workflows',
  summary: 'Update a feed',
  description: 'Changes the settings of a feed. Omitted fields stay unchanged, and so do the addresses.',
  parameters: [...parameters, IF_MATCH],
  requestBody: jsonBody({ type: 'object', minProperties: 1, properties: settings }),
  answer: jsonResponse('Feed updated', changed),
  errors: {
    field_invalid: 'A field is not valid',
    ...errors,
    precondition_failed: 'Feed changed: `If-Match` does not have the current `ETag`',
  },

  async handle(call) {
    const changes = await settingsFrom(await bodyFields(call, 'a JSON object with the fields to change'));
    if (Object.keys(changes).length === 0)
      invalid(`Send at least one of ${Object.keys(settings).join(', ')}`);
    const before = await feedOf(call);
    const expected = checkIfMatch(call, settingsOf(before)) ? before.revision : undefined;
    const after = await call.services.store.feeds.change({ ...placeOf(call), settings: changes, expected });
    if (after === 'stale') throw new Problem('precondition_failed');
    return { message: 'Feed updated', feed: shown(call, found(after, 'feed_not_found')) };
  },
};

/** POST /v1/workflows/{workflowId}/feeds/{feedId}/rotate */
export const rotateFeed: Operation<FeedCall> = {
  id: 'rotateFeed',
  group: 'Workflows',
  summary: 'Rotate the address of a feed',
  description: 'Gives the feed new addresses. The previous ones return 410.',
  parameters,
  answer: jsonResponse('New addresses created', changed),
  errors,

  async handle(call) {
    const { store, feedAddresses } = call.services;
    const at = placeOf(call);
    const feed = await store.feeds.rotate({ ...at, token: feedAddresses.newToken(at.teamId) });
    return {
      message: 'Feed rotated. The previous addresses return 410',
      feed: shown(call, found(feed, 'feed_not_found')),
    };
  },
};

/** DELETE /v1/workflows/{workflowId}/feeds/{feedId} */
export const revokeFeed: Operation<KeyedCall> = {
  id: 'revokeFeed',
  group: 'Workflows',
  summary: 'Revoke a feed',
  description: 'Deletes the feed. Its addresses then return 410.',
  parameters,
  answer: jsonResponse('Feed revoked', messageResource),
  errors,

  async handle(call) {
    if (!(await call.services.store.feeds.revoke(placeOf(call)))) throw new Problem('feed_not_found');
    return { message: 'Feed revoked. Its addresses return 410' };
  },
};

function workflowOf({ caller, params }: KeyedCall): { teamId: string; workflowId: string } {
  return { teamId: caller.teamId, workflowId: workflowIdFrom(params.workflowId) };
}

function placeOf(call: KeyedCall): { teamId: string; workflowId: string; id: string } {
  return { ...workflowOf(call), ...keyOfPath(call, 'feed') };
}

async function feedOf(call: KeyedCall): Promise<Feed> {
  return found(await call.services.store.feeds.get(placeOf(call)), 'feed_not_found');
}

function shown({ services }: FeedCall, feed: Feed) {
  return shownFeed(feed, services.feedAddresses.urlsOf(feed));
}

/** The part that `If-Match` compares. */
function settingsOf({ title, filter, entries, windowMs, most }: Feed): string {
  return JSON.stringify([title, filter, entries, windowMs, most]);
}

/** @throws Problem `field_invalid` */
async function settingsFrom(fields: Readonly<Record<string, unknown>>): Promise<Partial<FeedSettings>> {
  const { title, filter, entries, window, limit } = fields;
  return {
    ...(title !== undefined && { title: titleFrom(title) }),
    ...(filter !== undefined && { filter: await filterFrom(filter) }),
    ...(entries !== undefined && { entries: oneOf('`entries`', entries, FEED_ENTRIES) }),
    ...(window !== undefined && { windowMs: windowFrom(window) }),
    ...(limit !== undefined && { most: wholeFrom(limit, '`limit`', FEED_LIMIT) }),
  };
}

function titleFrom(value: unknown): string | null {
  if (value === null) return null;
  const isTitle =
    typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= MAX_FEED_TITLE &&
    value.isWellFormed() &&
    !/\p{Cc}/u.test(value);
  if (isTitle) return value;
  return invalid(
    `\`title\` must be a string of 1 to ${MAX_FEED_TITLE} characters without control characters, or null`,
  );
}

/** Loads the libraries for expressions with the first filter. */
async function filterFrom(value: unknown): Promise<string | null> {
  if (value === null) return null;
  const { ruleFrom } = await import('../../model/rule-fields.ts');
  return ruleFrom({ filter: value }).filter;
}

function windowFrom(value: unknown): number {
  const { leastMs, mostMs } = FEED_WINDOW;
  const ms = typeof value === 'string' && value.endsWith('d') ? parseDuration(value) : undefined;
  if (ms !== undefined && ms >= leastMs && ms <= mostMs) return ms;
  return invalid('`window` must be a number of days from "1d" to "365d", such as "30d"');
}
