/** Webhooks: subscribing, their settings and state, and their deliveries. */
import { type ListOptions, type Pages, pagesOf, type WholeList, wholeListOf } from './pages.ts';
import type {
  Delivery,
  DeliveryCommand,
  DeliveryDetail,
  Replay,
  ReplayDeliveryResult,
  ReplayPlan,
  RotateWebhookSecretResult,
  TestWebhookResult,
  Webhook,
  WebhookDetail,
  WebhookSettings,
} from './resources.ts';
import { type CallOptions, type KeyedOptions, randomKey, type Transport } from './transport.ts';

export type DeliveryState = Delivery['state'];

/** Selects deliveries by when they were created: `until` is now, and `states` all that have not arrived, unless told. */
export interface ReplaySelection {
  since: Date | string;
  until?: Date | string;
  states?: DeliveryState[];
}

const ALL = '/v1/integrations/webhooks';

export class Webhooks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** All webhooks of the team, oldest first, or those of one workflow. @throws NotFound for the workflow */
  list({ workflowId, ...options }: CallOptions & { workflowId?: string } = {}): WholeList<Webhook> {
    const call = { ...options, path: `${ALL}/list`, query: { workflowId } };
    return wholeListOf(this.#transport, 'webhooks', call);
  }

  /**
   * The same with how each is called and stands, in pages: of a workflow, or those that are `failing` (no attempt has
   * succeeded of late), `paused`, or `active` without trouble. @throws NotFound for the workflow
   */
  listDetails({
    workflowId,
    state,
    ...options
  }: ListOptions & {
    workflowId?: string | undefined;
    state?: readonly ('active' | 'failing' | 'paused')[] | undefined;
  } = {}): Pages<WebhookDetail> {
    return pagesOf(this.#transport, 'webhooks', { ...options, path: ALL, query: { workflowId, state } });
  }

  /**
   * Subscribes a URL to events of a workflow. Repeating it creates nothing and resumes the webhook if it was paused.
   *
   * @param input.events names such as `workflow_finished`, or `*` for all
   * @returns a message that also says which event names never occur, and whether network policy refuses the address
   * @throws NotFound; Conflict when the workflow has as many as it may have
   */
  async subscribe(
    { workflowId, url, events }: { workflowId: string; url: string; events: readonly string[] },
    options: CallOptions = {},
  ): Promise<{ message: string; webhookId: string }> {
    const { value, headers } = await this.#transport.answer<{ message: string }>({
      ...options,
      method: 'POST',
      path: `${ALL}/subscribe`,
      json: { workflowId, webhookUrl: url, events },
    });
    return { message: value.message, webhookId: headers.get('x-webhook-id') ?? '' };
  }

  /** Subscribes a URL to events of all workflows of the team, also of those that come later. */
  subscribeToAll(
    { url, events, settings }: { url: string; events: readonly string[]; settings?: WebhookSettings },
    options: CallOptions = {},
  ): Promise<WebhookDetail> {
    return this.#transport.json({
      ...options,
      method: 'POST',
      path: ALL,
      json: { webhookUrl: url, events, settings },
    });
  }

  /** Removes a webhook and cancels its waiting deliveries. @throws NotFound */
  unsubscribe(webhookId: string, options: CallOptions = {}): Promise<{ message: string }> {
    const path = `${ALL}/unsubscribe/${encodeURIComponent(webhookId)}`;
    return this.#transport.remove({ ...options, path });
  }

  /** Removes the webhooks of a URL, for callers that do not know their ids. @throws NotFound */
  unsubscribeUrl(
    { url, workflowId }: { url: string; workflowId?: string },
    options: CallOptions = {},
  ): Promise<{ message: string }> {
    const query = { webhookUrl: url, workflowId };
    return this.#transport.remove({ ...options, path: `${ALL}/unsubscribe`, query });
  }

  /** @throws NotFound */
  get(webhookId: string, options: CallOptions = {}): Promise<WebhookDetail> {
    return this.#transport.json({ ...options, path: pathOf(webhookId) });
  }

  /** @throws NotFound */
  update(webhookId: string, settings: WebhookSettings, options: CallOptions = {}): Promise<WebhookDetail> {
    return this.#change({ ...options, method: 'PATCH', path: pathOf(webhookId), json: settings });
  }

  /** The secret with which a receiver verifies `v1` signatures. @throws NotFound */
  async secret(webhookId: string, options: CallOptions = {}): Promise<string> {
    const call = { ...options, path: `${pathOf(webhookId)}/secret` };
    return (await this.#transport.json<{ secret: string }>(call)).secret;
  }

  /**
   * Gives it a new secret.
   *
   * @param options.overlapHours for how many hours deliveries are also signed with the old one
   * @throws NotFound
   */
  rotate(
    webhookId: string,
    { overlapHours, ...options }: CallOptions & { overlapHours?: number } = {},
  ): Promise<RotateWebhookSecretResult> {
    const path = `${pathOf(webhookId)}/rotate`;
    return this.#transport.json({ ...options, method: 'POST', path, json: { overlapHours } });
  }

  /** Sends `webhook_test` to this webhook only, whatever it is subscribed to. @throws NotFound */
  test(
    webhookId: string,
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<TestWebhookResult> {
    const path = `${pathOf(webhookId)}/test`;
    return this.#transport.json({ ...options, method: 'POST', path, idempotencyKey });
  }

  /** Its deliveries wait until it is resumed. @throws NotFound */
  pause(
    webhookId: string,
    { reason, ...options }: CallOptions & { reason?: string } = {},
  ): Promise<WebhookDetail> {
    const path = `${pathOf(webhookId)}/pause`;
    return this.#change({ ...options, method: 'POST', path, json: { reason } });
  }

  /** @throws NotFound */
  resume(webhookId: string, options: CallOptions = {}): Promise<WebhookDetail> {
    return this.#change({ ...options, method: 'POST', path: `${pathOf(webhookId)}/resume` });
  }

  /** Its deliveries, newest first. @throws NotFound */
  deliveries(
    webhookId: string,
    options: ListOptions & {
      state?: readonly DeliveryState[] | undefined;
      since?: Date | string | undefined;
      until?: Date | string | undefined;
    } = {},
  ): Pages<Delivery> {
    const { state, since, until, ...rest } = options;
    return pagesOf(this.#transport, 'deliveries', {
      ...rest,
      path: `${pathOf(webhookId)}/deliveries`,
      query: { state, since, until },
    });
  }

  /**
   * Sends these deliveries once more: 1 to 100 of them, all or none.
   *
   * @returns the deliveries that send them: those that still wait for the events, else new ones
   * @throws NotFound
   */
  async replay(
    webhookId: string,
    deliveryIds: readonly string[],
    options: KeyedOptions = {},
  ): Promise<string[]> {
    const call = this.#replayOf(webhookId, { deliveryIds }, options);
    return (await this.#transport.json<{ deliveryIds: string[] }>(call)).deliveryIds;
  }

  /** Counts what `replaySince` would send, and sends nothing. @throws NotFound */
  async planReplay(
    webhookId: string,
    { since, until, states }: ReplaySelection,
    options: CallOptions = {},
  ): Promise<ReplayPlan> {
    const path = `${pathOf(webhookId)}/replay`;
    const json = { since, until, states, dryRun: true };
    return (await this.#transport.json<{ plan: ReplayPlan }>({ ...options, method: 'POST', path, json }))
      .plan;
  }

  /** Begins to replay all deliveries since a time that have not arrived, or those in some states. @throws NotFound */
  async replaySince(
    webhookId: string,
    { since, until, states }: ReplaySelection,
    options: KeyedOptions = {},
  ): Promise<Replay> {
    const call = this.#replayOf(webhookId, { since, until, states }, options);
    return (await this.#transport.json<{ replay: Replay }>(call)).replay;
  }

  /** How far a replay is, and what became of what it has sent. @throws NotFound */
  readReplay(webhookId: string, replayId: string, options: CallOptions = {}): Promise<Replay> {
    const path = `${pathOf(webhookId)}/replays/${encodeURIComponent(replayId)}`;
    return this.#transport.json({ ...options, path });
  }

  #replayOf(webhookId: string, json: object, { idempotencyKey = randomKey(), ...options }: KeyedOptions) {
    return { ...options, method: 'POST', path: `${pathOf(webhookId)}/replay`, json, idempotencyKey };
  }

  async #change(call: Parameters<Transport['json']>[0]): Promise<WebhookDetail> {
    return (await this.#transport.json<{ webhook: WebhookDetail }>(call)).webhook;
  }
}

export class Deliveries {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** One with its event and all its attempts. @throws NotFound */
  get(deliveryId: string, options: CallOptions = {}): Promise<DeliveryDetail> {
    return this.#transport.json({ ...options, path: `/v1/deliveries/${encodeURIComponent(deliveryId)}` });
  }

  /**
   * A curl command that sends the delivery, signed for the next five minutes.
   *
   * @returns `hidden`: the headers whose values are replaced by `***`
   * @throws NotFound, also when its webhook is gone
   */
  curl(deliveryId: string, options: CallOptions = {}): Promise<DeliveryCommand> {
    const path = `/v1/deliveries/${encodeURIComponent(deliveryId)}/curl`;
    return this.#transport.json({ ...options, path });
  }

  /**
   * Sends the same event to the same webhook once more, now.
   *
   * @returns the delivery that sends it: the one that still waits for the event (`retried`), else a new one, and
   *   how many attempts it has had already. `message` says if something holds it back.
   * @throws NotFound
   */
  replay(
    deliveryId: string,
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<ReplayDeliveryResult> {
    const path = `/v1/deliveries/${encodeURIComponent(deliveryId)}/replay`;
    return this.#transport.json({ ...options, method: 'POST', path, idempotencyKey });
  }
}

function pathOf(webhookId: string): string {
  return `${ALL}/${encodeURIComponent(webhookId)}`;
}
