/** What people read about a digest. */
import { countWords, grouped } from '../../std/amounts.ts';
import { inUrl, MAX_ROWS, type Noticed, type NoticeGroup, type NoticePart, rowsOf } from './notice.ts';
import type { NoticeRow, RowSource } from './notice-row.ts';
import { oneLine } from './plain-text.ts';

/** Maximum number of workflows with a group of their own. With that of the events, and that of the rest, 9 groups. */
const MAX_WORKFLOWS = 7;
const MAX_EVENT_TITLE = 150;

/** The `data` of `webhook_digest`, as far as a notice reads it. */
interface DigestData {
  webhookId: string;
  from: string;
  until: string;
  matched: number;
  records: number;
  workflows?: { workflowId: string; records: number; differences: RowSource[] }[];
  events?: { type: string; workflowId: string | null; jobId: string | null; summary: string }[];
  /** Number of events that are not listed. */
  more?: number;
}

export function digestPart({ data, time, page }: Noticed): NoticePart {
  const {
    webhookId,
    from,
    until,
    matched,
    records,
    workflows = [],
    events = [],
    more = 0,
  } = data as unknown as DigestData;
  const others = events.length + more;
  const rowsLeft = Math.max(0, MAX_ROWS - Math.min(events.length, MAX_ROWS / 2));
  const shares = fairShares(
    workflows.slice(0, MAX_WORKFLOWS).map(({ differences }) => differences.length),
    rowsLeft,
  );
  const groups: NoticeGroup[] = workflows.slice(0, MAX_WORKFLOWS).map((workflow, place) => {
    const at = `/workflows/${inUrl(workflow.workflowId)}`;
    const pageOf = ({ type, id }: RowSource) =>
      page(type === 'removed' ? `${at}/changes` : `${at}/data?q=${inUrl(id)}`);
    const rows = rowsOf(workflow.differences, pageOf, shares[place]);
    // The title of the message names the only workflow.
    const isOnly = workflows.length === 1 && others === 0;
    const title = isOnly ? null : `${workflow.workflowId}: ${countWords(workflow.records, 'record')}`;
    return { title, rows, more: Math.max(0, workflow.records - rows.length) };
  });
  const rest = workflows.slice(MAX_WORKFLOWS);
  if (rest.length > 0) {
    const left = rest.reduce((sum, one) => sum + one.records, 0);
    groups.push({ title: `${countWords(rest.length, 'other workflow')}`, rows: [], more: left });
  }
  if (others > 0) {
    const used = groups.reduce((sum, { rows }) => sum + rows.length, 0);
    const rows = events.slice(0, MAX_ROWS - used).map((event) => eventRow(event, page));
    groups.push({ title: countWords(others, 'event'), rows, more: others - rows.length });
  }
  const [first] = workflows;
  const about = first === undefined ? '' : workflows.length === 1 ? `${first.workflowId}: ` : '';
  const counted = [
    ...(records > 0 ? [countWords(records, 'record')] : []),
    ...(others > 0 ? [countWords(others, 'event')] : []),
  ].join(' and ');
  const places = workflows.length > 1 ? ` in ${countWords(workflows.length, 'workflow')}` : '';
  return {
    tone: events.some(({ type }) => type === 'workflow_failed') ? 'failure' : 'change',
    title: `${about}${counted === '' ? 'nothing' : counted}${places} in this digest`,
    summary: `${grouped(matched)} ${matched === 1 ? 'match' : 'matches'} from ${time(from)} to ${time(until)}.`,
    url: page(
      workflows.length === 1 && first !== undefined
        ? `/workflows/${inUrl(first.workflowId)}/changes`
        : `/webhooks/${inUrl(webhookId)}`,
    ),
    facts: [],
    groups,
  };
}

function eventRow(
  { workflowId, jobId, type, summary }: NonNullable<DigestData['events']>[number],
  page: (path: string) => string,
): NoticeRow {
  const path =
    jobId != null ? `/runs/${inUrl(jobId)}` : workflowId != null ? `/workflows/${inUrl(workflowId)}` : null;
  const words = workflowId == null ? type : `${workflowId}: ${type.replaceAll('_', ' ')}`;
  const title = oneLine(summary ?? words, MAX_EVENT_TITLE) || type;
  return { change: 'event', title, url: path === null ? null : page(path), fields: [], moreFields: 0 };
}

/** Divides places among several: each gets what it needs, or else as much as the others that need more. */
function fairShares(needs: readonly number[], places: number): number[] {
  const shares = needs.map(() => 0);
  for (let left = places; left > 0; ) {
    const wanting = needs.flatMap((need, at) => (need > (shares[at] as number) ? [at] : []));
    if (wanting.length === 0) break;
    for (const at of wanting.slice(0, left)) shares[at] = (shares[at] as number) + 1;
    left -= Math.min(left, wanting.length);
  }
  return shares;
}
