/** Searches what a team has: workflows, webhooks, jobs, deliveries, events and records, in a limited time. */

import { maskedUrl } from '../model/messages/destination.ts';
import { ownTurn } from '../std/fair-share.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';

export const SEARCHED = ['workflows', 'webhooks', 'jobs', 'deliveries', 'events', 'records'] as const;
export type Searched = (typeof SEARCHED)[number];

/** Something that was found: `text` is the text with the match, and `path` the page of the dashboard. */
export interface Hit {
  type: Searched;
  id: string;
  title: string;
  text: string;
  path: string;
}

interface Search {
  teamId: string;
  q: string;
  /** Hits of each type. */
  limit: number;
  /** Whether the caller may see deliveries and whole URLs. */
  mayManage: boolean;
  /** Until when the search may take, as `performance.now()`. */
  untilMs: number;
}

/** How long a search may take, in milliseconds. A step that has started is finished. */
const MOST_MS = 200;
/** Number of failed jobs that are searched at most. */
const MAX_JOBS = 2_000;
const JOB_PAGE = 250;
/** Number of rows of records per step. */
const SCAN_ROWS = 2_000;
/** Characters before and after a match. */
const AROUND = 60;

/**
 * @param input.types where to search
 * @returns the hits by type, and the types that were not searched completely
 */
export async function searchTeam(
  store: Store,
  { types, ...input }: Omit<Search, 'untilMs'> & { types: readonly Searched[] },
): Promise<{ hits: Hit[]; incomplete: Searched[] }> {
  const search: Search = { ...input, untilMs: performance.now() + MOST_MS };
  const hits: Hit[] = [];
  const incomplete: Searched[] = [];
  for (const type of SEARCHED.filter((one) => types.includes(one))) {
    if (performance.now() >= search.untilMs) incomplete.push(type);
    else if (!(await SEARCHES[type](store, search, hits))) incomplete.push(type);
  }
  return { hits, incomplete };
}

/** Adds hits of one type. Returns whether everything was searched, or enough was found. */
type SearchOne = (store: Store, search: Search, hits: Hit[]) => Promise<boolean>;

const SEARCHES: Record<Searched, SearchOne> = {
  async workflows(store, search, hits) {
    return collect(
      search,
      hits,
      everyRow(store.workflows.list, { teamId: search.teamId }),
      ({ id, ...of }) => {
        const text = firstMatch(search.q, [id, of.definition.name]);
        return text && hit('workflows', id, of.definition.name, text, `/workflows/${encodeURIComponent(id)}`);
      },
    );
  },
  async webhooks(store, search, hits) {
    const { teamId, q, mayManage } = search;
    return collect(search, hits, everyRow(store.webhooks.list, { teamId }), (webhook) => {
      const { id, name, description, labels, rule } = webhook;
      const url = mayManage ? webhook.url : maskedUrl(webhook.url, rule);
      const text = firstMatch(q, [name, description, url, ...labels]) ?? (id === q ? url : undefined);
      return text && hit('webhooks', id, name ?? url, text, `/webhooks/${id}`);
    });
  },
  async jobs(store, search, hits) {
    const { teamId, q } = search;
    const shown = (job: { id: string; workflowId: string }, text: string) =>
      hit('jobs', job.id, job.workflowId, text, `/runs/${job.id}`);
    const named = q.startsWith('job_') ? await store.jobs.get({ teamId, id: q }) : undefined;
    if (named !== undefined) return hits.push(shown(named, named.error ?? named.id)) > 0;
    let before: { before?: string } = {};
    let found = 0;
    for (let looked = 0; looked < MAX_JOBS; looked += JOB_PAGE) {
      const states = ['failed', 'canceled'] as const;
      const page = await store.jobs.list({ teamId, states, ...before, limit: JOB_PAGE });
      for (const job of page) {
        const text = firstMatch(q, [job.error]);
        if (text !== undefined) hits.push(shown(job, text));
        if (text !== undefined && ++found >= search.limit) return true;
      }
      const last = page.at(-1);
      if (last === undefined || page.length < JOB_PAGE) return true;
      before = { before: last.id };
      if (performance.now() >= search.untilMs) return false;
      await ownTurn(teamId);
    }
    return false;
  },
  async deliveries(store, { teamId, q, limit }, hits) {
    const { rows, next } = await store.deliveries.search({ teamId, q, limit });
    for (const { id, webhookName, webhookUrl, webhookId, last, eventType } of rows) {
      const text = firstMatch(q, [last?.error, webhookName, webhookUrl]) ?? last?.error ?? id;
      hits.push(
        hit(
          'deliveries',
          id,
          `${eventType} to ${webhookName ?? webhookUrl ?? webhookId}`,
          text,
          `/deliveries/${id}`,
        ),
      );
    }
    return next === null || rows.length >= limit;
  },
  async events(store, { teamId, q }, hits) {
    const event = q.startsWith('evt_') ? await store.events.get({ teamId, id: q }) : undefined;
    if (event !== undefined) hits.push(hit('events', event.id, event.type, event.id, `/events/${event.id}`));
    return true;
  },
  async records(store, search, hits) {
    const { teamId, limit, untilMs } = search;
    // The stored records are JSON, in which quotes and line breaks are escaped.
    const q = JSON.stringify(search.q).slice(1, -1);
    let left = limit;
    for await (const { id: workflowId } of everyRow(store.workflows.list, { teamId })) {
      const version = await store.records.version({ teamId, workflowId });
      if (version === undefined) continue;
      for (let afterSeq = 0, done = version.total === 0; !done; ) {
        if (performance.now() >= untilMs) return false;
        await ownTurn(teamId);
        const at = { teamId, workflowId, version: version.number };
        const page = await store.records.search({ ...at, q, afterSeq, scan: SCAN_ROWS, limit: left });
        hits.push(...recordsOf(page.json, { workflowId, q }));
        left -= page.count;
        if (left <= 0) return true;
        ({ done, lastSeq: afterSeq } = page);
      }
    }
    return true;
  },
};

async function collect<Row>(
  { limit, untilMs }: Search,
  hits: Hit[],
  rows: AsyncIterable<Row>,
  found: (row: Row) => Hit | undefined | '',
): Promise<boolean> {
  let left = limit;
  for await (const row of rows) {
    const one = found(row);
    if (one) hits.push(one);
    if (one && --left <= 0) return true;
    if (performance.now() >= untilMs) return false;
  }
  return true;
}

function recordsOf(json: Uint8Array, { workflowId, q }: { workflowId: string; q: string }): Hit[] {
  const records = JSON.parse(`[${Buffer.from(json).toString()}]`) as { id: string }[];
  const page = `/workflows/${encodeURIComponent(workflowId)}/data`;
  return records.map((record) => {
    const text = firstMatch(q, [JSON.stringify(record)]) ?? record.id;
    return hit('records', record.id, workflowId, text, `${page}?record=${encodeURIComponent(record.id)}`);
  });
}

function hit(type: Searched, id: string, title: string, text: string, path: string): Hit {
  return { type, id, title, text, path: `/ui${path}` };
}

/** The first text with a match, shortened around it. */
function firstMatch(q: string, texts: readonly (string | null | undefined)[]): string | undefined {
  for (const text of texts) {
    const at = text?.toLowerCase().indexOf(q.toLowerCase()) ?? -1;
    if (typeof text !== 'string' || at === -1) continue;
    const [from, to] = [Math.max(0, at - AROUND), at + q.length + AROUND];
    return `${from > 0 ? '…' : ''}${text.slice(from, to)}${to < text.length ? '…' : ''}`;
  }
  return undefined;
}
