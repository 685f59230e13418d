/** `flowhook webhooks` and `flowhook events` against a server. A webhook is named by its id there. */
import type { Flowhook, WebhookDetail } from 'flowhook-client';
import { wholeNumber } from './find.ts';
import { print } from './open.ts';
import { withoutTeam } from './remote-jobs.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { eventNames } from './webhook-names.ts';
import { webhookCells } from './webhook-words.ts';
import { columns, table } from './words.ts';

export async function listWebhooksAt(server: Flowhook, options: Options): Promise<void> {
  const { team } = await server.me();
  const workflowId = options.workflow === undefined ? {} : { workflowId: String(options.workflow) };
  const webhooks: WebhookDetail[] = [];
  for (const { id } of await server.webhooks.list(workflowId)) webhooks.push(await server.webhooks.get(id));
  print(
    options,
    webhooks.map((webhook) => ({ team: team.slug, ...webhook })),
    table(
      webhooks.map((webhook) => webhookCells(webhook, team.slug, Date.now())),
      process.stdout.columns,
    ),
  );
}

export async function subscribeAtServer(
  server: Flowhook,
  first: string,
  second: string | undefined,
  options: Options,
): Promise<void> {
  const events = eventNames(options);
  if (second === undefined) {
    const webhook = await server.webhooks.subscribeToAll({ url: first, events });
    return print(options, webhook, [webhook.id]);
  }
  const subscribed = { workflowId: withoutTeam(first), url: second, events };
  const { webhookId, message } = await server.webhooks.subscribe(subscribed);
  print(options, await server.webhooks.get(webhookId), [webhookId]);
  say(message);
}

/** What is done to one webhook, by the name of its command. */
export const WEBHOOK_COMMANDS_AT: Readonly<
  Record<string, (server: Flowhook, id: string, options: Options) => Promise<void>>
> = {
  async show(server, id, options) {
    const webhook = await server.webhooks.get(id);
    const { settings, events, ...rest } = webhook;
    const rows = Object.entries({ ...rest, events: events.join(', '), ...settings });
    print(
      options,
      webhook,
      columns(rows.flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]]))),
    );
  },
  async unsubscribe(server, id, options) {
    const isUrl = id.includes('://');
    const { message } = await (isUrl
      ? server.webhooks.unsubscribeUrl({ url: id })
      : server.webhooks.unsubscribe(id));
    print(options, { id, unsubscribed: true }, [`unsubscribed ${id}`]);
    say(message);
  },
  async pause(server, id, options) {
    const reason = options.reason === undefined ? {} : { reason: String(options.reason) };
    print(options, await server.webhooks.pause(id, reason), [`paused ${id}`]);
  },
  async resume(server, id, options) {
    print(options, await server.webhooks.resume(id), [`resumed ${id}`]);
  },
  async rotate(server, id, options) {
    const hours = options.overlapHours === undefined ? {} : { overlapHours: Number(options.overlapHours) };
    const { secret, overlapUntil } = await server.webhooks.rotate(id, hours);
    print(options, { id, secret, overlapUntil }, [secret]);
    say(`The old secret signs along until ${overlapUntil}`);
  },
  async secret(server, id, options) {
    const secret = await server.webhooks.secret(id);
    print(options, { id, secret }, [secret]);
  },
};

export async function listEventsAt(server: Flowhook, options: Options): Promise<void> {
  const limit = wholeNumber('--limit', options.limit ?? 100, 1, 250);
  const after =
    options.after === undefined
      ? Math.max(0, (await server.events.page({ after: 'now' })).next - limit)
      : wholeNumber('--after', options.after, 0, Number.MAX_SAFE_INTEGER);
  const { events } = await server.events.page({ after, limit });
  const cells = events.map((event) => [
    String(event.sequence),
    event.timestamp,
    event.type,
    event.workflowId ?? '-',
    event.id,
    event.jobId ?? '',
  ]);
  print(options, events, table(cells, process.stdout.columns));
}
