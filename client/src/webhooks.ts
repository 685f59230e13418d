/** Webhooks: subscriptions, settings, state and deliveries. */
import { type ListOptions, type Pages, pagesOf, type WholeList, wholeListOf } from './pages.ts';
import type {
  Decision,
  Delivery,
  DeliveryCommand,
  DeliveryDetail,
  NewWebhook,
  Replay,
  ReplayDeliveryResult,
  ReplayPlan,
  Retry,
  RetryPlan,
  RotateWebhookSecretResult,
  TestWebhookResult,
  TryWebhookRequest,
  TryWebhookResult,
  Webhook,
  WebhookChanges,
  WebhookDetail,
} from './resources.ts';
import { type CallOptions, type KeyedOptions, randomKey, type Transport } from './transport.ts';

export type DeliveryState = Delivery['state'];
export type DecisionState = Decision['state'];

/** `message`: what the call that created or changed it has done, and what may prevent deliveries. */
export type CreatedWebhook = WebhookDetail & { message: string };

/** Selects deliveries of a team. Each field that is given narrows the selection. */
export interface DeliveryFilter {
  webhookId?: string | undefined;
  /** A label of the webhook. */
  label?: string | undefined;
  /** The workflow of the event. */
  workflowId?: string | undefined;
  state?: readonly DeliveryState[] | undefined;
  event?: readonly Delivery['eventType'][] | undefined;
  /** Of the last attempt: a status such as `503`, a class such as `5xx`, or `none` if there was no response. */
  status?: string | undefined;
  /** Text in the last error, or in the name or URL of the webhook; or the ID of the delivery or its event. */
  q?: string | undefined;
  since?: Date | string | undefined;
  until?: Date | string | undefined;
}

/** Selects deliveries to retry (default: all that have not arrived). */
export interface RetrySelection {
  states?: readonly DeliveryState[] | undefined;
  webhookId?: string | undefined;
  /** A label of the webhook. */
  label?: string | undefined;
  /** The workflow of the event. */
  workflowId?: string | undefined;
  events?: readonly Delivery['eventType'][] | undefined;
  /** Of the last attempt: a status such as `503`, a class such as `5xx`, or `none` if there was no response. */
  status?: string | undefined;
  since?: Date | string | undefined;
  until?: Date | string | undefined;
}

/** Selects deliveries by creation time (default for `until`: now) and state (default: all that have not arrived). */
export interface ReplaySelection {
  since: Date | string;
  until?: Date | string;
  states?: DeliveryState[];
}

/** How webhooks are sorted. A `-` before the name reverses the order. */
type WebhookSort = 'name' | 'createdAt' | 'lastSuccessAt' | 'failingSince';

const ALL = '/v1/integrations/webhooks';
const RETRY = '/v1/deliveries/retry';

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
   * The webhooks of the team with their settings and state. `state` filters: `failing` webhooks are active, but their last
   * attempts have failed. `q` searches names, descriptions, URLs and labels.
   *
   * @throws NotFound for the workflow
   */
  listDetails({
    workflowId,
    state,
    label,
    q,
    sort,
    ...options
  }: ListOptions & {
    workflowId?: string | undefined;
    state?: readonly ('active' | 'failing' | 'paused')[] | undefined;
    label?: string | undefined;
    q?: string | undefined;
    sort?: WebhookSort | `-${WebhookSort}` | undefined;
  } = {}): Pages<WebhookDetail> {
    const query = { workflowId, state, label, q, sort };
    return pagesOf(this.#transport, 'webhooks', { ...options, path: ALL, query });
  }

  /**
   * Subscribes a URL to events of a workflow. Repeating the call creates nothing and resumes the webhook if it was
   * paused.
   *
   * @param input.events names such as `workflow_finished`, or `*` for all
   * @returns a message that also names events that never occur, and says whether the network policy blocks the URL
   * @throws NotFound; Conflict if the workflow has reached its limit of webhooks
   */
  async subscribe(
    { workflowId, url, events }: { workflowId: string; url: string; events: readonly string[] },
    options: CallOptions = {},
  ): Promise<{ message: string; webhookId: string }> {
    const { value, headers } = await this.#transport.withHeaders<{ message: string }>({
      ...options,
      method: 'POST',
      path: `${ALL}/subscribe`,
      json: { workflowId, webhookUrl: url, events },
    });
    return { message: value.message, webhookId: headers.get('x-webhook-id') ?? '' };
  }

  /**
   * Subscribes a URL to events of a workflow or, without `workflowId`, of all workflows of the team, including later
   * ones. Repeating the call with the same workflow, URL, events and filter creates nothing, updates the other given
   * fields, and resumes the webhook if it was paused.
   *
   * @param input.url http:// or https://, or `mailto:` with one address, whose reader must confirm it first
   * @throws NotFound for the workflow; Conflict if the limit of webhooks is reached
   */
  create(
    {
      url,
      ...fields
    }: Omit<NewWebhook, 'webhookUrl' | 'events'> & { url: string; events: readonly string[] },
    options: CallOptions = {},
  ): Promise<CreatedWebhook> {
    const json = { webhookUrl: url, ...fields };
    return this.#transport.json({ ...options, method: 'POST', path: ALL, json });
  }

  /** @deprecated `create` without `workflowId` does the same. */
  subscribeToAll(...input: Parameters<Webhooks['create']>): Promise<CreatedWebhook> {
    return this.create(...input);
  }

  /** Removes a webhook and cancels its waiting deliveries. @throws NotFound */
  unsubscribe(webhookId: string, options: CallOptions = {}): Promise<{ message: string }> {
    const path = `${ALL}/unsubscribe/${encodeURIComponent(webhookId)}`;
    return this.#transport.remove({ ...options, path });
  }

  /** Removes all webhooks with a URL, for callers that do not know their IDs. @throws NotFound */
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

  /**
   * Changes the given fields. Waiting deliveries go to a new `url`; new `events` apply to later events.
   *
   * @throws NotFound; Conflict if another webhook has the same workflow, URL, events and filter
   */
  async update(
    webhookId: string,
    changes: WebhookChanges,
    options: CallOptions = {},
  ): Promise<CreatedWebhook> {
    const call = { ...options, method: 'PATCH', path: pathOf(webhookId), json: changes };
    const { message, webhook } = await this.#transport.json<{ message: string; webhook: WebhookDetail }>(
      call,
    );
    return { ...webhook, message };
  }

  /** The secret with which a receiver verifies `v1` signatures. @throws NotFound */
  async secret(webhookId: string, options: CallOptions = {}): Promise<string> {
    const call = { ...options, path: `${pathOf(webhookId)}/secret` };
    return (await this.#transport.json<{ secret: string }>(call)).secret;
  }

  /**
   * Replaces the secret of a webhook.
   *
   * @param options.overlapHours hours for which deliveries are also signed with the old secret (default: 24)
   * @throws NotFound
   */
  rotate(
    webhookId: string,
    { overlapHours, ...options }: CallOptions & { overlapHours?: number } = {},
  ): Promise<RotateWebhookSecretResult> {
    const path = `${pathOf(webhookId)}/rotate`;
    return this.#transport.json({ ...options, method: 'POST', path, json: { overlapHours } });
  }

  /** Sends a `webhook_test` event to this webhook only. @throws NotFound */
  test(
    webhookId: string,
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<TestWebhookResult> {
    const path = `${pathOf(webhookId)}/test`;
    return this.#transport.json({ ...options, method: 'POST', path, idempotencyKey });
  }

  /** Holds back the deliveries of a webhook until it is resumed. @throws NotFound */
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

  /**
   * Sends the mail again with which the reader of an address confirms it.
   *
   * @throws NotFound; FlowhookError `mail_failed` with the words of the SMTP server, `verification_limit`
   */
  verify(webhookId: string, options: CallOptions = {}): Promise<{ message: string; webhook: WebhookDetail }> {
    return this.#transport.json({ ...options, method: 'POST', path: `${pathOf(webhookId)}/verify` });
  }

  /** The deliveries of a webhook, newest first. @throws NotFound */
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

  /** What the rule of a webhook decided about events, newest event first. @throws NotFound */
  decisions(
    webhookId: string,
    { state, ...options }: ListOptions & { state?: readonly DecisionState[] | undefined } = {},
  ): Pages<Decision> {
    const path = `${pathOf(webhookId)}/decisions`;
    return pagesOf(this.#transport, 'decisions', { ...options, path, query: { state } });
  }

  /**
   * What a rule would have sent of the last events. Nothing is sent or saved.
   *
   * @returns `mistake`: why the rule is not valid, with the place in it; `tried` is empty then
   * @throws NotFound for the workflow
   */
  try(rule: TryWebhookRequest = {}, options: CallOptions = {}): Promise<TryWebhookResult> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/webhooks/try', json: rule });
  }

  /**
   * Sends 1 to 100 deliveries again, all or none.
   *
   * @returns the IDs of the deliveries that send the events: waiting deliveries, or else new ones
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

  /** Counts the events that `replaySince` would send, without sending them. @throws NotFound */
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

  /** Starts to replay the deliveries of a period. @throws NotFound */
  async replaySince(
    webhookId: string,
    { since, until, states }: ReplaySelection,
    options: KeyedOptions = {},
  ): Promise<Replay> {
    const call = this.#replayOf(webhookId, { since, until, states }, options);
    return (await this.#transport.json<{ replay: Replay }>(call)).replay;
  }

  /** The progress of a replay, and the results of its deliveries. @throws NotFound */
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

  /** The deliveries to all webhooks of the team, newest first. @throws NotFound for the workflow */
  list(options: ListOptions & DeliveryFilter = {}): Pages<Delivery> {
    const { webhookId, label, workflowId, state, event, status, q, since, until, ...rest } = options;
    const query = { webhookId, label, workflowId, state, event, status, q, since, until };
    return pagesOf(this.#transport, 'deliveries', { ...rest, path: '/v1/deliveries', query });
  }

  /** A delivery with its event and attempts. @throws NotFound */
  get(deliveryId: string, options: CallOptions = {}): Promise<DeliveryDetail> {
    return this.#transport.json({ ...options, path: `/v1/deliveries/${encodeURIComponent(deliveryId)}` });
  }

  /**
   * A curl command that sends the event again, with a signature that is valid for five minutes.
   *
   * @returns `hidden`: the headers whose values are replaced by `***`
   * @throws NotFound, also if the webhook was unsubscribed
   */
  curl(deliveryId: string, options: CallOptions = {}): Promise<DeliveryCommand> {
    const path = `/v1/deliveries/${encodeURIComponent(deliveryId)}/curl`;
    return this.#transport.json({ ...options, path });
  }

  /** Counts the events that `retry` would send, without sending them. @throws NotFound */
  async planRetry(selection: RetrySelection = {}, options: CallOptions = {}): Promise<RetryPlan> {
    const call = { ...options, method: 'POST', path: RETRY, json: { ...selection, dryRun: true } };
    return (await this.#transport.json<{ plan: RetryPlan }>(call)).plan;
  }

  /**
   * Sends all selected deliveries now, to all webhooks: those that wait become due, and the others are sent again.
   *
   * @returns the retry, or null if there is nothing to send
   * @throws NotFound for the webhook or the workflow
   */
  async retry(
    selection: RetrySelection = {},
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<Retry | null> {
    const call = { ...options, method: 'POST', path: RETRY, json: selection, idempotencyKey };
    return (await this.#transport.json<{ retry?: Retry }>(call)).retry ?? null;
  }

  /** The progress of a retry, and what the receivers returned. @throws NotFound */
  readRetry(retryId: string, options: CallOptions = {}): Promise<Retry> {
    return this.#transport.json({ ...options, path: `/v1/retries/${encodeURIComponent(retryId)}` });
  }

  /**
   * Sends the event of a delivery to its webhook again.
   *
   * @returns the delivery that sends the event: a waiting one (`retried`), or else a new one. `message` says whether the webhook
   *   is held back.
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
