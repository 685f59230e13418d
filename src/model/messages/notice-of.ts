/** What people read about an event. */
import { stripVTControlCharacters } from 'node:util';
import { countWords, grouped } from '../../std/amounts.ts';
import { parseExactly } from '../../std/exact-json.ts';
import type { Selection } from '../selection.ts';
import { digestPart } from './digest-notice.ts';
import { inUrl, type Notice, type Noticed, type NoticePart, rowsOf, type Sender } from './notice.ts';
import type { RowSource } from './notice-row.ts';
import { oneLine } from './plain-text.ts';
import { zonedIso } from './zoned-time.ts';

const MAX_LOG_LINES = 15;
const MAX_LOG_LINE = 300;
const MAX_TITLE = 150;
const MAX_SUMMARY = 500;
const MAX_FACT = 200;
const MAX_FACTS = 10;

export interface NoticeInput {
  /** The body in the format `standard`. */
  body: string;
  selection: Selection | null;
  publicUrl: string;
  timeZone: string;
  webhook: Sender;
  log?: readonly string[];
}

export function noticeOf({ body, selection, publicUrl, timeZone, webhook, log = [] }: NoticeInput): Notice {
  const event = parseExactly(body) as Record<string, unknown>;
  const noticed: Noticed = {
    type: String(event.type),
    workflowId: textOrNull(event.workflowId),
    jobId: textOrNull(event.jobId),
    data: (event.data ?? {}) as Record<string, unknown>,
    selection,
    time: (value) => zonedIso(value, timeZone),
    page: (path) => `${publicUrl}/ui${path}`,
  };
  const part = (PARTS[noticed.type] ?? otherPart)(noticed);
  // The sentence about a digest already says when it ended.
  const isDigest = noticed.type === 'webhook_digest';
  const time = isDigest ? [] : [{ name: 'Time', value: noticed.time(event.timestamp) }];
  const facts = [...part.facts, ...time];
  const name = webhook.name ?? webhook.id;
  return {
    ...part,
    title: oneLine(part.title, MAX_TITLE) || 'Flowhook',
    summary: part.summary === null ? null : oneLine(part.summary, MAX_SUMMARY) || null,
    facts: facts
      .map(({ name, value }) => ({ name: oneLine(name, MAX_FACT), value: oneLine(value, MAX_FACT) }))
      .filter(({ name, value }) => name !== '' && value !== '')
      .slice(-MAX_FACTS),
    groups: part.groups ?? [],
    log: log.length === 0 ? null : log.slice(-MAX_LOG_LINES).map(logLine),
    footer:
      name === '' ? 'Sent by Flowhook.' : `Sent by Flowhook for the webhook “${oneLine(name, MAX_FACT)}”.`,
    footerUrl: webhook.id === '' ? null : noticed.page(`/webhooks/${inUrl(webhook.id)}`),
  };
}

/** Programs color their output with sequences that would be left over as `[31m`. */
function logLine(line: string): string {
  return oneLine(stripVTControlCharacters(line), MAX_LOG_LINE);
}

const PARTS: Readonly<Record<string, (noticed: Noticed) => NoticePart>> = {
  workflow_data_change: changePart,
  workflow_queued: (noticed) => jobPart(noticed, { tone: 'info', ending: 'is queued' }),
  workflow_started: (noticed) => jobPart(noticed, { tone: 'info', ending: 'has started' }),
  workflow_schema_changed: (noticed) =>
    jobPart(noticed, { tone: 'warning', ending: 'has changed its fields' }),
  workflow_expectation_failed: (noticed) =>
    jobPart(noticed, { tone: 'warning', ending: 'does not meet its expectations' }),
  workflow_finished: (noticed) => jobPart(noticed, { tone: 'info', ending: 'has finished' }),
  workflow_failed: (noticed) => jobPart(noticed, { tone: 'failure', ending: 'failed' }),
  workflow_canceled: (noticed) => jobPart(noticed, { tone: 'info', ending: 'was canceled' }),
  workflow_stale: stalePart,
  workflow_recovered: (noticed) => {
    const part = jobPart(noticed, { tone: 'info', ending: 'is fresh again' });
    return {
      ...part,
      facts: [...part.facts, { name: 'Stale since', value: noticed.time(noticed.data.staleSince) }],
    };
  },
  webhook_test: ({ data }) => ({
    tone: 'info',
    title: 'A test message from Flowhook',
    summary: String(data.message ?? ''),
    url: null,
    facts: [],
  }),
  webhook_paused: (noticed) =>
    webhookPart(noticed, { tone: 'warning', ending: 'is paused', why: noticed.data.reason }),
  webhook_failing: (noticed) =>
    webhookPart(noticed, { tone: 'warning', ending: 'is failing', why: noticed.data.lastError }),
  webhook_digest: digestPart,
};

function changePart(noticed: Noticed): NoticePart {
  const { data, selection, page } = noticed;
  const workflowId = noticed.workflowId ?? '';
  const at = `/workflows/${inUrl(workflowId)}`;
  const all = (data.records ?? {}) as Partial<Record<'total' | Change, number>>;
  const sources = selection?.differences ?? ((data.differences ?? []) as RowSource[]);
  const total = CHANGES.reduce((sum, change) => sum + (all[change] ?? 0), 0);
  const matched = selection?.matched ?? total;
  const changes = page(`${at}/changes?version=${data.version}`);
  const rows = rowsOf(sources, ({ type, id }) =>
    type === 'removed' ? changes : page(`${at}/data?q=${inUrl(id)}`),
  );
  const counts = matched === total ? all : matched === sources.length ? countsOf(sources) : null;
  const sentences = [
    ...(matched < (selection?.examined ?? 0)
      ? [`${grouped(matched)} of ${countWords(selection?.examined ?? 0, 'difference')} match the filter.`]
      : []),
    ...(data.cooldownEnded === true ? ['This is what changed during the cooldown.'] : []),
    ...(data.previousVersion === 0 ? ['This is the first version.'] : []),
  ];
  const [only] = rows;
  const isOne = matched === 1 && only !== undefined;
  return {
    tone: 'change',
    title: `${workflowId}: ${isOne ? `${only.title} ${only.change}` : changesWords(counts, matched)}`,
    summary: sentences.length === 0 ? null : sentences.join(' '),
    url: changes,
    facts: [
      { name: 'Workflow', value: workflowId },
      { name: 'Version', value: `${data.version} (${countWords(all.total ?? 0, 'record')})` },
    ],
    groups: rows.length === 0 ? [] : [{ title: null, rows, more: Math.max(0, matched - rows.length) }],
  };
}

const CHANGES = ['added', 'changed', 'removed'] as const;
type Change = (typeof CHANGES)[number];

function countsOf(sources: readonly RowSource[]): Record<Change, number> {
  const counts = { added: 0, changed: 0, removed: 0 };
  for (const { type } of sources) counts[type] += 1;
  return counts;
}

/** `2 records added, 1 changed`. */
function changesWords(counts: Partial<Record<Change, number>> | null, matched: number): string {
  const known = counts === null ? [] : CHANGES.filter((change) => (counts[change] ?? 0) > 0);
  if (known.length === 0) return `${countWords(matched, 'record')} ${matched === 1 ? 'matches' : 'match'}`;
  return known
    .map((change, place) => {
      const count = counts?.[change] ?? 0;
      return `${place === 0 ? countWords(count, 'record') : grouped(count)} ${change}`;
    })
    .join(', ');
}

function jobPart(
  { workflowId, jobId, data, page }: Noticed,
  { tone, ending }: { tone: Notice['tone']; ending: string },
): NoticePart {
  const { reason, attempt, error, version, records } = data;
  const hasFailed = typeof reason === 'string';
  const { total, added, changed, removed } = (records ?? {}) as Record<string, number>;
  const counts = { added: added ?? 0, changed: changed ?? 0, removed: removed ?? 0 };
  const isSame = counts.added + counts.changed + counts.removed === 0;
  const published = isSame ? 'No record changed.' : `${changesWords(counts, 0)}.`;
  return {
    tone,
    title: `${workflowId} ${ending}`,
    summary: typeof error === 'string' ? error : records === undefined ? null : published,
    url: jobId === null ? null : page(`/runs/${inUrl(jobId)}`),
    facts: [
      { name: 'Workflow', value: workflowId ?? '' },
      ...(version === undefined
        ? []
        : [{ name: 'Version', value: `${version} (${countWords(total ?? 0, 'record')})` }]),
      ...(hasFailed ? [{ name: 'Reason', value: reason.replaceAll('_', ' ') }] : []),
      ...(hasFailed && attempt !== undefined ? [{ name: 'Attempts', value: String(attempt) }] : []),
    ],
  };
}

function stalePart({ workflowId, data, time, page }: Noticed): NoticePart {
  const last = data.lastJob as { state: string; error: string | null } | null;
  const { error = null } = last ?? {};
  return {
    tone: 'warning',
    title: `${workflowId} is stale`,
    summary: textOrNull(data.reason),
    url: page(`/workflows/${inUrl(workflowId ?? '')}`),
    facts: [
      { name: 'Workflow', value: workflowId ?? '' },
      { name: 'Since', value: time(data.waitingSince) },
      {
        name: 'Last run',
        value: last === null ? 'none' : `${last.state}${error === null ? '' : `: ${error}`}`,
      },
    ],
  };
}

function webhookPart(
  { data, time, page }: Noticed,
  { tone, ending, why }: { tone: Notice['tone']; ending: string; why: unknown },
): NoticePart {
  const { webhookId, name, url, failures, retriesAt } = data;
  const id = String(webhookId);
  const since = data.since ?? data.pausedAt;
  const destination = destinationOf(url);
  return {
    tone,
    title: `The webhook ${oneLine(textOrNull(name) ?? '', MAX_FACT) || destination || id} ${ending}`,
    summary: textOrNull(why),
    url: page(`/webhooks/${inUrl(id)}`),
    facts: [
      ...(destination === null ? [] : [{ name: 'Destination', value: destination }]),
      ...(since == null ? [] : [{ name: 'Since', value: time(since) }]),
      ...(failures == null ? [] : [{ name: 'Failed attempts', value: grouped(Number(failures)) }]),
      ...(retriesAt == null ? [] : [{ name: 'Next attempt', value: time(retriesAt) }]),
    ],
  };
}

/** The host of a URL, or a mail address. The paths of chat webhooks are secrets. */
function destinationOf(url: unknown): string | null {
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  if (parsed === null) return null;
  return parsed.protocol === 'mailto:' ? parsed.pathname : parsed.host;
}

/** An event of a type that this version has no words for. */
function otherPart({ type, workflowId, data, page }: Noticed): NoticePart {
  const words = type.replaceAll('_', ' ');
  return {
    tone: 'info',
    title: workflowId === null ? words : `${workflowId}: ${words}`,
    summary: null,
    url: workflowId === null ? null : page(`/workflows/${inUrl(workflowId)}`),
    facts: Object.entries(data)
      .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
      .map(([name, value]) => ({ name, value: String(value) })),
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
