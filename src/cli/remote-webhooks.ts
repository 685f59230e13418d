/** `flowhook webhooks` against a server. */
import type { Flowhook, WebhookDetail } from 'flowhook-client';
import { NotFoundError, UsageError } from './exit.ts';
import { print } from './output.ts';
import { withoutTeam } from './remote.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { columns, table } from './table.ts';
import { confirmRotating, confirmUnsubscribing, MOST_COUNTED } from './webhook-confirm.ts';
import { eventNames, overlapHoursFrom, refuseWrongUrl, settingsFrom } from './webhook-flags.ts';
import { WEBHOOK_HEADS, webhookCells } from './webhook-words.ts';

export async function listWebhooksAt(server: Flowhook, options: Options): Promise<void> {
  const { team } = await server.me();
  const filter = options.workflow === undefined ? {} : { workflowId: withoutTeam(String(options.workflow)) };
  const webhooks = await Array.fromAsync(server.webhooks.listDetails({ ...filter, limit: 1_000 }));
  print(
    options,
    webhooks.map((webhook) => ({ team: team.slug, ...webhook })),
    table(
      webhooks.map((webhook) => webhookCells(webhook, team.slug, Date.now())),
      process.stdout.columns,
      WEBHOOK_HEADS,
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
  refuseWrongUrl(second ?? first);
  if (second === undefined) {
    const webhook = await server.webhooks.subscribeToAll({ url: first, events });
    return print(options, webhook, [webhook.id]);
  }
  const subscribed = { workflowId: withoutTeam(first), url: second, events };
  const { webhookId, message } = await server.webhooks.subscribe(subscribed);
  print(options, await server.webhooks.get(webhookId), [webhookId]);
  say(message);
}

/**
 * The id of the webhook that a command names by its id or its URL.
 *
 * @throws NotFoundError; UsageError when several have the URL
 */
export async function webhookIdAt(server: Flowhook, name: string): Promise<string> {
  if (!name.includes('://')) return name;
  const ids = (await server.webhooks.list()).filter(({ url }) => url === name).map(({ id }) => id);
  const [only, ...others] = ids;
  if (only === undefined) {
    throw new NotFoundError(`No webhook "${name}" found. \`flowhook webhooks list\` shows what there is`);
  }
  if (others.length === 0) return only;
  throw new UsageError(`Several webhooks have this URL: name one by its id (${ids.join(', ')})`);
}

/** Commands for one webhook, by name. */
export const WEBHOOK_COMMANDS_AT = {
  async show(server, id, options) {
    printWebhook(await server.webhooks.get(id), options);
  },
  async set(server, id, options) {
    printWebhook(await server.webhooks.update(id, settingsFrom(options)), options);
  },
  async unsubscribe(server, id, options) {
    if (options.yes !== true) {
      const waiting = { state: ['waiting'] as const };
      await confirmUnsubscribing(options, await server.webhooks.get(id), async () => {
        return (await server.webhooks.deliveries(id, waiting).take(MOST_COUNTED + 1)).length;
      });
    }
    const { message } = await server.webhooks.unsubscribe(id);
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
    const overlapHours = overlapHoursFrom(options);
    if (overlapHours === 0 && options.yes !== true) {
      await confirmRotating(options, await server.webhooks.get(id), overlapHours);
    }
    const { secret, overlapUntil } = await server.webhooks.rotate(id, { overlapHours });
    print(options, { id, secret, overlapUntil }, [secret]);
    if (overlapHours > 0) say(`The old secret also signs until ${overlapUntil}`);
  },
  async secret(server, id, options) {
    const secret = await server.webhooks.secret(id);
    print(options, { id, secret }, [secret]);
  },
} satisfies Record<string, (server: Flowhook, id: string, options: Options) => Promise<void>>;

function printWebhook(webhook: WebhookDetail, options: Options): void {
  const { settings, events, ...rest } = webhook;
  const rows = Object.entries({ ...rest, events: events.join(', '), ...settings });
  print(
    options,
    webhook,
    columns(rows.flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]]))),
  );
}
