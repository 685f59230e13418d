/** Finds the changes in a team since the last look, by kind and id, for its streams. */
import type { JobState } from '../../model/job.ts';
import { everyRow } from '../../store/page.ts';
import type { Store } from '../../store/store.ts';
import type { LaneName } from '../../store/transaction.ts';

export const NEWS_KINDS = [
  'jobs',
  'workflows',
  'versions',
  'webhooks',
  'deliveries',
  'inspectors',
  'keys',
] as const;
export type NewsKind = (typeof NEWS_KINDS)[number];

/** The ids of a kind that may have changed; null: any id. */
export interface News {
  kind: NewsKind;
  ids: string[] | null;
}

/** If more ids than this have changed, `ids` is null. */
const MAX_IDS = 100;
/** Maximum number of events that one look reads. If there are more, anything may have changed. */
const MAX_EVENTS = 1_000;
const EVENTS_AT_ONCE = 250;
const MAX_JOBS = 200;
const UNFINISHED: JobState[] = ['queued', 'running', 'retrying'];
/** Maximum number of webhooks whose deliveries are compared, and of newest deliveries of each. */
const MAX_WATCHED = 64;
const MAX_DELIVERIES = 20;
/** Comparisons read many rows, so they start at most once per second and take at most a twentieth of the time. */
const COMPARE_EVERY_MS = 1_000;
const COMPARE_SHARE = 20;

/** For each id, a text that changes whenever the object changes. */
type Marks = Map<string, string>;

/**
 * Changes of jobs and versions are known from events, in order and immediately. Everything else has no history and is
 * compared with its state at the last look, which also finds changes by other nodes and processes.
 */
export class TeamNews {
  readonly teamId: string;
  /** The sequence of the last event that was read. */
  sequence = 0;
  readonly #store: Store;
  readonly #marks = new Map<NewsKind, Marks>();
  readonly #watched = new Set<string>();
  #compareAt = 0;

  constructor(store: Store, teamId: string) {
    this.#store = store;
    this.teamId = teamId;
  }

  /** Records the current state, for comparison. */
  async start(): Promise<void> {
    this.sequence = await this.#store.events.newestSequence({ teamId: this.teamId });
    await this.#compare();
  }

  /** Notes webhooks that have due deliveries; null: any webhook may have some. */
  noteLanes(lanes: readonly LaneName[] | null): void {
    const ids = lanes?.filter(({ teamId }) => teamId === this.teamId).map(({ webhookId }) => webhookId);
    for (const id of ids ?? this.#marks.get('webhooks')?.keys() ?? []) this.#watch(id);
  }

  /** The changes since the last successful call. */
  async look(): Promise<News[]> {
    const happened = await this.#happened(this.sequence);
    const compared = performance.now() < this.#compareAt ? [] : await this.#compare();
    // The sequence is stored only after all reads have succeeded. Otherwise the changes would never be reported.
    this.sequence = happened.sequence;
    return joined([...happened.news, ...compared]);
  }

  /** The changes since a sequence, for a client that resumes. Without a history, anything may have changed. */
  async missed(after: number): Promise<{ news: News[]; sequence: number }> {
    if (after > this.sequence) return { news: anything(), sequence: this.sequence };
    const { news, sequence } = await this.#happened(after);
    const compared = NEWS_KINDS.filter((kind) => kind !== 'versions').map((kind) => ({ kind, ids: null }));
    return { news: joined([...news, ...compared]), sequence };
  }

  /** The changes that events after a sequence report. If there are too many events, anything may have changed. */
  async #happened(after: number): Promise<{ news: News[]; sequence: number }> {
    const news: News[] = [];
    let sequence = after;
    for (let read = 0; read < MAX_EVENTS; read += EVENTS_AT_ONCE) {
      const at = { teamId: this.teamId, afterSequence: sequence, limit: EVENTS_AT_ONCE };
      const events = await this.#store.events.list(at);
      for (const { type, workflowId, jobId, body } of events) {
        if (workflowId !== null) news.push({ kind: 'workflows', ids: [workflowId] });
        if (jobId !== null) news.push({ kind: 'jobs', ids: [jobId] });
        if (type === 'workflow_data_change' && workflowId !== null) {
          news.push({ kind: 'versions', ids: [workflowId] });
        }
        if (type === 'webhook_paused' || type === 'webhook_failing')
          news.push({ kind: 'webhooks', ids: [webhookOf(body)] });
      }
      sequence = events.at(-1)?.sequence ?? sequence;
      if (events.length < EVENTS_AT_ONCE) return { news: joined(news), sequence };
    }
    return { news: anything(), sequence: await this.#store.events.newestSequence({ teamId: this.teamId }) };
  }

  async #compare(): Promise<News[]> {
    const startMs = performance.now();
    const { teamId } = this;
    const store = this.#store;
    const workflows: Marks = new Map();
    const versions: Marks = new Map();
    for await (const one of everyRow(store.workflows.list, { teamId })) {
      const { id, currentVersion } = one;
      workflows.set(
        id,
        mark(one.updatedAt, one.pausedAt, currentVersion, one.nextRunAt, one.freshDueAt, one.staleSince),
      );
      versions.set(id, mark(currentVersion, one.oldestVersion));
    }
    const webhooks: Marks = new Map();
    for await (const one of everyRow(store.webhooks.list, { teamId })) {
      const { state, settings, pausedReason, failingSince, breaker, lastSuccessAt } = one;
      const { name, ruleRevision, ruleMistake } = one;
      const rule = [name, ruleRevision, ruleMistake];
      webhooks.set(one.id, mark(state, settings, pausedReason, failingSince, breaker, lastSuccessAt, rule));
    }
    const inspectors: Marks = new Map();
    for (const one of await store.inspectors.list({ teamId })) {
      inspectors.set(one.id, mark(one.received, one.status, one.delayMs));
    }
    const keys: Marks = new Map();
    for await (const one of everyRow(store.keys.list, { teamId })) {
      keys.set(one.id, mark(one.expiresAt, one.revokedAt));
    }
    const jobs: Marks = new Map();
    for (const one of await store.jobs.list({ teamId, states: UNFINISHED, limit: MAX_JOBS })) {
      const { state, attempt, slot, runAt, cancelRequestedAt, progress } = one;
      jobs.set(one.id, mark(state, attempt, slot, runAt, cancelRequestedAt, progress));
    }
    // This is the last read. Nothing can fail after it, so all recorded changes are also returned.
    const deliveries = await this.#compareDeliveries();
    const news = [
      ...this.#differ('workflows', workflows),
      ...this.#differ('versions', versions),
      ...this.#differ('webhooks', webhooks),
      ...this.#differ('inspectors', inspectors),
      ...this.#differ('keys', keys),
      ...this.#differ('jobs', jobs),
      ...deliveries,
    ];
    const tookMs = performance.now() - startMs;
    this.#compareAt = performance.now() + Math.max(COMPARE_EVERY_MS, tookMs * COMPARE_SHARE);
    return news;
  }

  /**
   * Webhooks are watched until none of their newest deliveries is waiting. A webhook that is noted during this loop is
   * read again, because `#watch` moves it to the end of the set: the last read decides.
   */
  async #compareDeliveries(): Promise<News[]> {
    const before = this.#marks.get('deliveries') ?? new Map<string, string>();
    const after: Marks = new Map();
    const changed: string[] = [];
    const settled = new Set<string>();
    for (const webhookId of this.#watched) {
      const newest = await this.#store.deliveries.list({
        teamId: this.teamId,
        webhookId,
        limit: MAX_DELIVERIES,
      });
      for (const { id, state, attempt } of newest) {
        after.set(id, mark(state, attempt));
        if (before.get(id) !== after.get(id)) changed.push(id);
      }
      if (newest.every(({ state }) => state !== 'waiting')) settled.add(webhookId);
      else settled.delete(webhookId);
    }
    for (const webhookId of settled) this.#watched.delete(webhookId);
    this.#marks.set('deliveries', after);
    return changed.length === 0 ? [] : [{ kind: 'deliveries', ids: changed }];
  }

  #watch(webhookId: string): void {
    this.#watched.delete(webhookId);
    this.#watched.add(webhookId);
    const [oldest] = this.#watched;
    if (this.#watched.size > MAX_WATCHED && oldest !== undefined) this.#watched.delete(oldest);
  }

  #differ(kind: NewsKind, after: Marks): News[] {
    const before = this.#marks.get(kind);
    this.#marks.set(kind, after);
    if (before === undefined) return [];
    const ids: string[] = [];
    for (const [id, text] of after) if (before.get(id) !== text) ids.push(id);
    for (const id of before.keys()) if (!after.has(id)) ids.push(id);
    return ids.length === 0 ? [] : [{ kind, ids }];
  }
}

function anything(): News[] {
  return NEWS_KINDS.map((kind) => ({ kind, ids: null }));
}

/** Merges news of the same kind. */
function joined(news: readonly News[]): News[] {
  return NEWS_KINDS.flatMap((kind) => {
    const ofKind = news.filter((one) => one.kind === kind);
    if (ofKind.length === 0) return [];
    const ids = new Set(ofKind.flatMap((one) => one.ids ?? []));
    const isAny = ids.size > MAX_IDS || ofKind.some((one) => one.ids === null);
    return [{ kind, ids: isAny ? null : [...ids] }];
  });
}

function mark(...values: unknown[]): string {
  return JSON.stringify(values);
}

function webhookOf(body: string): string {
  return (JSON.parse(body) as { data: { webhookId: string } }).data.webhookId;
}
