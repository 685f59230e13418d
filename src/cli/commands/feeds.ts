/** `flowhook feeds`: feeds of the changes of workflows, at secret addresses. */
import type { Feed, FeedChanges, FlowhookError } from '../../../client/src/flowhook-client.ts';
import { FEED_ENTRIES, FEED_LIMIT } from '../../model/messages/feed.ts';
import { nearest } from '../../std/nearest.ts';
import type { Command } from '../command.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { type Options, oneOf, wholeNumber } from '../options.ts';
import { onTarget, onWorkflow, type Target, type TargetTeam } from '../target.ts';
import { addYes, confirm, fields, type Head, print, say, table } from '../terminal.ts';
import { dateWords } from '../times.ts';

const MAX_TITLE_SHOWN = 40;
const MAX_FILTER_SHOWN = 60;
const UNREADABLE = 'unreadable with this encryption key: run `flowhook feeds rotate`';

export function addFeeds(program: Command): void {
  const feeds = program
    .command('feeds')
    .description('publish the changes of workflows as Atom and JSON Feed, at secret addresses');

  const create = feeds
    .command('create')
    .description('create a feed of a workflow and print its address')
    .withExamples(
      'feeds create people',
      `feeds create prices --title "Price cuts" --filter 'fallsBy(previous.price, record.price, "5%")'`,
    )
    .argument('<workflow>', 'id of the workflow')
    .option('--team <slug>', 'team of the workflow, if several teams have one with this id');
  onTarget(addSettingFlags(create, { removes: false }), createFeed, {
    check: (_workflow: string, options) => void settingsFrom(options),
  });

  const list = feeds
    .command('list')
    .description('list the feeds of a workflow with their addresses, oldest first')
    .withExamples('feeds list people')
    .argument('<workflow>', 'id of the workflow')
    .option('--team <slug>', 'team of the workflow, if several teams have one with this id');
  onTarget(list, listFeeds);

  const one = (
    name: string,
    description: string,
    action: (feed: Place, options: Options) => Promise<void>,
    check?: (options: Options) => void,
  ) =>
    onTarget(
      feeds
        .command(name)
        .description(description)
        .withExamples(`feeds ${name} people FEED`)
        .argument('<workflow>', 'id of the workflow')
        .argument('<feed>', 'id of the feed, as `flowhook feeds list` shows it')
        .option('--team <slug>', 'team of the workflow, if several teams have one with this id'),
      (target, workflow: string, feed: string, options: Options) =>
        onFeed(target, { workflow, feed }, (place) => action(place, options)),
      { check: (_workflow: string, _feed: string, options) => check?.(options) },
    );
  one('show', 'show the settings and the addresses of a feed', async (place, options) =>
    printFeed(await place.client.feeds.get(place.workflowId, place.id), options),
  );
  const setting = one(
    'set',
    'change settings of a feed; its addresses and all other settings stay',
    async ({ client, workflowId, id }, options) =>
      printFeed(await client.feeds.update(workflowId, id, settingsFrom(options)), options),
    (options) => {
      if (Object.keys(settingsFrom(options)).length > 0) return;
      throw new UsageError('Nothing to change: give at least one of the flags that --help lists');
    },
  ).withExamples('feeds set people FEED --title "All people" --window 90d');
  addSettingFlags(setting, { removes: true });
  addYes(one('rotate', 'give a feed new addresses and print one; the old ones stop working', rotate));
  addYes(one('revoke', 'delete a feed permanently; its addresses stop working', revoke));
}

function addSettingFlags(command: Command, { removes }: { removes: boolean }): Command {
  command.option('--title <text>', 'title for readers (default: the name of the workflow)');
  if (removes) command.option('--no-title', 'use the name of the workflow as title');
  command.option('--filter <expression>', 'show only changes that match, such as \'change == "added"\'');
  if (removes) command.option('--no-filter', 'show all changes');
  return command
    .option('--entries <kind>', `what an entry is about: ${FEED_ENTRIES.join(', ')} (default: record)`)
    .withValues('--entries', FEED_ENTRIES)
    .option('--window <days>', 'time that the feed reaches back, 1d to 365d (default: 30d)')
    .option(
      '--limit <number>',
      `maximum number of entries, up to ${FEED_LIMIT.most} (default: ${FEED_LIMIT.usual})`,
    );
}

/** @throws UsageError */
function settingsFrom({ title, filter, entries, window, limit }: Options): FeedChanges {
  return {
    ...(title === undefined ? {} : { title: title === false ? null : String(title) }),
    ...(filter === undefined ? {} : { filter: filter === false ? null : String(filter) }),
    ...(entries === undefined ? {} : { entries: oneOf('--entries', String(entries), FEED_ENTRIES) }),
    ...(window === undefined ? {} : { window: String(window) }),
    ...(limit === undefined
      ? {}
      : { limit: wholeNumber('--limit', limit, FEED_LIMIT.least, FEED_LIMIT.most) }),
  };
}

async function createFeed(target: Target, workflow: string, options: Options): Promise<void> {
  await onWorkflow(target, workflow, async ({ client }, workflowId) => {
    const feed = await client.feeds.create(workflowId, settingsFrom(options));
    print(options, feed, [addressOf(feed)]);
    say(`Feed ${feed.id} is public at this address: anyone who has the address can read it`);
  });
}

const HEADS: readonly Head[] = [
  { name: 'feed' },
  { name: 'title', drop: 2 },
  { name: 'entries', drop: 3 },
  { name: 'address' },
  { name: 'filter', drop: 1 },
];

async function listFeeds(target: Target, workflow: string, options: Options): Promise<void> {
  await onWorkflow(target, workflow, async ({ client }, workflowId) => {
    const feeds = await client.feeds.list(workflowId);
    const cells = feeds.map((feed) => [
      feed.id,
      oneLine(feed.title ?? '', MAX_TITLE_SHOWN),
      feed.entries,
      addressOf(feed),
      oneLine(feed.filter ?? '', MAX_FILTER_SHOWN),
    ]);
    print(options, feeds, table(cells, process.stdout.columns, HEADS));
    if (feeds.length > 0 || options.json === true) return;
    say(`No feeds found. Create one with \`flowhook feeds create ${workflowId}\``);
  });
}

async function rotate({ client, workflowId, id }: Place, options: Options): Promise<void> {
  await confirm(options, {
    what: `The addresses of the feed ${id} will stop working immediately, so its readers need the new ones`,
    otherwise: 'the addresses were not changed',
  });
  const feed = await client.feeds.rotate(workflowId, id);
  print(options, feed, [addressOf(feed)]);
}

async function revoke({ client, workflowId, id }: Place, options: Options): Promise<void> {
  await confirm(options, {
    what: `The feed ${id} will be permanently deleted, and its addresses will stop working`,
    otherwise: 'nothing was deleted',
  });
  await client.feeds.revoke(workflowId, id);
  print(options, { id, revoked: true }, [`revoked ${id}`]);
}

function printFeed(feed: Feed, options: Options): void {
  const now = Date.now();
  const lines = fields([
    ['feed', feed.id],
    ['workflow', feed.workflowId],
    ['title', feed.title],
    ['filter', feed.filter],
    ['entries', `one per ${feed.entries}, at most ${feed.limit}`],
    ['window', feed.window],
    ['atom', feed.urls?.atom ?? UNREADABLE],
    ['json', feed.urls?.json],
    ['page', feed.urls?.html],
    ['created', dateWords(feed.createdAt, now)],
    ['changed', feed.changedAt === feed.createdAt ? null : dateWords(feed.changedAt, now)],
  ]);
  print(options, feed, lines);
}

function addressOf({ urls }: Feed): string {
  return urls?.atom ?? UNREADABLE;
}

interface Place extends TargetTeam {
  workflowId: string;
  id: string;
}

/** @throws NotFoundError with the most similar id */
function onFeed(
  target: Target,
  { workflow, feed: id }: { workflow: string; feed: string },
  action: (place: Place) => Promise<void>,
): Promise<void> {
  return onWorkflow(target, workflow, async (team, workflowId) => {
    try {
      await action({ ...team, workflowId, id });
    } catch (error) {
      if ((error as FlowhookError).code !== 'feed_not_found') throw error;
      const meant = nearest(
        id,
        (await team.client.feeds.list(workflowId)).map((feed) => feed.id),
      );
      const next =
        meant === undefined ? `\`flowhook feeds list ${workflowId}\` shows them` : `Did you mean ${meant}?`;
      throw new NotFoundError(`The workflow "${workflowId}" has no feed "${id}". ${next}`);
    }
  });
}
