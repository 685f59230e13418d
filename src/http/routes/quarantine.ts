/** The quarantine of a workflow: records that did not meet an expectation. They are listed, accepted and dropped here. */
import {
  acceptQuarantined,
  CONFLICTS,
  quarantinePages,
  resolveSelection,
} from '../../jobs/accept-quarantined.ts';
import { jobHeaders } from '../../jobs/submit.ts';
import { found, Problem } from '../../model/error.ts';
import { MOST_QUARANTINED, MOST_SET_ASIDE, type Quarantined } from '../../model/quality/quarantine.ts';
import type { WorkflowRef } from '../../model/workflow.ts';
import { csvLine, csvRow, encoded, FORMATS, type Format } from '../../records/formats.ts';
import { recordCounts } from '../../resources/job.ts';
import {
  quarantinedBesideResource,
  quarantinedLine,
  quarantinedResource,
  reasonsText,
  shownBeside,
  shownQuarantined,
} from '../../resources/quarantine.ts';
import { grouped } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import { parseExactly } from '../../std/exact-json.ts';
import { ownTurn } from '../../std/fair-share.ts';
import { choice, integer, list, object, text } from '../../std/shape.ts';
import type { QuarantineCursor, QuarantineSelection } from '../../store/operations/quarantine/entries.ts';
import type { Store } from '../../store/store.ts';
import { bodyFields } from '../input/body.ts';
import { cursorFrom, listOperation, makeCursor } from '../input/list-page.ts';
import { formatParameter, queryValue, readGiven, textParameter } from '../input/query.ts';
import { invalid, isGeneratedId, workflowIdFrom } from '../input/values.ts';
import { acceptedEncoding, acceptedFormat } from '../negotiate.ts';
import { jsonBody, jsonResponse, NEXT_PAGE, RETRY_AFTER, textContent } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { bodyHeaders, sendStream } from '../send-body.ts';
import { asPusher, type PushCall } from './push.ts';

/** Maximum number of ids per request, and maximum length of an id or a field in characters. */
const MAX_IDS = 1_000;
const MAX_TEXT = 1_024;
/** Maximum number of columns of CSV that are fields of records, as in the data. Further fields are left out. */
const MAX_COLUMNS = 1_000;
/** Bytes of records that a stream formats in one turn of the event loop, because wide records take long to parse. */
const BYTES_AT_ONCE = 65_536;
/** The largest number that a cursor of this list may have. */
const MAX_PLACE = 2_147_483_647;
/** Entries deleted per transaction. */
const DROPPED_AT_ONCE = 250;

const workflow = pathParameter('workflowId', 'Workflow ID');
const FORMAT = formatParameter(FORMATS);
const FILTERS = {
  jobId: textParameter('jobId', 'Filter by the job that set the record aside', 64),
  field: textParameter('field', 'Filter by a field that a reason names', MAX_TEXT),
};

const page = listOperation({
  id: 'listQuarantine',
  group: 'Workflows',
  summary: 'List the quarantine of a workflow',
  description:
    'Returns the records that did not meet an expectation of their fields, newest first: `otherwise: quarantine` of the ' +
    `workflow sets them aside, up to ${grouped(MOST_SET_ASIDE.records)} per run. There is one record per ID, the newest. A later ` +
    'run or push with a good record of the same ID removes it. Kept as long as jobs, and at most ' +
    `${grouped(MOST_QUARANTINED.records)} per workflow. As NDJSON and CSV, the response has all records that match.`,
  name: 'records',
  resource: quarantinedResource,
  order: {
    as: 'after',
    of: () => makeCursor([3, 4]),
    from(query: string): QuarantineCursor | undefined {
      const [run, position] = cursorFrom(query, [2]) ?? [];
      if (run === undefined || position === undefined) return undefined;
      return { run: Math.min(run, MAX_PLACE), position: Math.min(position, MAX_PLACE) };
    },
  },
  parameters: [workflow],
  filters: FILTERS,
  errors: { workflow_not_found: 'No workflow found' },
  async rows(call, { limit, ...range }) {
    const { store } = call.services;
    const at = await placeOf(call);
    call.reply.header('x-total-count', await store.quarantine.count(at));
    const { entries, next } = await store.quarantine.list({ ...at, ...range, limit: limit - 1 });
    return { rows: entries, next: next && makeCursor([next.run, next.position]) };
  },
  show: shownQuarantined,
});

/** GET /v1/workflows/{workflowId}/quarantine */
export const listQuarantine: Operation<KeyedCall> = {
  ...page,
  weight: 'whole',
  parameters: [...(page.parameters ?? []), FORMAT],
  answer: jsonResponse(
    'One page of records',
    object({ records: list(quarantinedResource) }),
    { Link: NEXT_PAGE, 'x-total-count': 'Number of records in the quarantine. Only for JSON' },
    {
      'application/x-ndjson': textContent('One record per line, with the fields of JSON'),
      'text/csv': textContent(
        'Columns `id`, `_job`, `_setAsideAt` and `_reasons`, then up to 1,000 fields of the records',
      ),
    },
  ),

  async handle(call) {
    const { query, request, reply } = call;
    const format = FORMAT.read(query) ?? acceptedFormat(request.headers.accept, FORMATS);
    reply.vary('accept', 'accept-encoding');
    if (format === 'json') return page.handle(call);
    for (const name of ['limit', 'cursor']) {
      if (queryValue(query, name) !== undefined)
        invalid(`The query parameter \`${name}\` is only for the format json: ${format} has all records`);
    }
    const at = await placeOf(call);
    const encoding = acceptedEncoding(request.headers['accept-encoding']);
    reply.headers(bodyHeaders({ format, encoding, workflowId: at.workflowId, version: 'quarantine' }));
    if (request.method === 'HEAD') return reply.send();
    const lines = linesOf(call.services.store, { ...at, ...readGiven(query, FILTERS) }, format);
    return sendStream(call, encoded(lines, encoding));
  },
};

/** GET /v1/workflows/{workflowId}/quarantine/{recordId} */
export const readQuarantined: Operation<KeyedCall> = {
  id: 'readQuarantined',
  group: 'Workflows',
  summary: 'Read a record in the quarantine',
  description: 'Returns the record that was set aside, and the published record with the same ID.',
  parameters: [workflow, pathParameter('recordId', 'Record ID')],
  answer: jsonResponse('Record in the quarantine', quarantinedBesideResource),
  errors: {
    workflow_not_found: 'No workflow found',
    quarantined_not_found: 'No record with this ID in the quarantine',
  },

  async handle(call) {
    const { store } = call.services;
    const { recordId } = call.params;
    const at = await placeOf(call);
    if (recordId === undefined || !isId(recordId)) throw new Problem('quarantined_not_found');
    const entry = found(await store.quarantine.get({ ...at, id: recordId }), 'quarantined_not_found');
    return shownBeside(entry, await store.quarantine.published({ ...at, id: recordId }));
  },
};

const conflicts = list(
  object({
    id: text('Record ID'),
    reason: choice(
      CONFLICTS,
      '`published`: a newer record with this ID was published. `set_aside_again`: a job after `untilJobId` has set ' +
        'another record with this ID aside. `not_found`: there is no record with this ID',
    ),
  }),
  'Given IDs whose records were left as they are. Empty with `all`',
);

const requestBody = jsonBody({
  type: 'object',
  description: 'Records, either by `ids`, or `all` of them',
  properties: {
    ids: {
      type: 'array',
      items: { type: 'string', minLength: 1, maxLength: MAX_TEXT },
      minItems: 1,
      maxItems: MAX_IDS,
      description: 'Record IDs',
    },
    all: { type: 'boolean', description: '`true` for all records, or all that match `jobId` and `field`' },
    jobId: { type: 'string', description: 'Selects what this job has set aside. Allowed only with `all`' },
    field: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_TEXT,
      description: 'Selects records with a reason about this field. Allowed only with `all`',
    },
    untilJobId: {
      type: 'string',
      description:
        'Leaves out what later jobs have set aside. Pass the newest job that you have seen in the list',
    },
  },
});

/** POST /v1/workflows/{workflowId}/quarantine/accept */
export const acceptQuarantine: Operation<PushCall> = {
  id: 'acceptQuarantine',
  weight: 'long',
  group: 'Workflows',
  summary: 'Accept records of the quarantine',
  description:
    'Publishes records as they are, without checking expectations, by a job of origin `push` in the mode `upsert` (in ' +
    'workflows of the mode `append`: `append`). A record that is not in the quarantine any more is not published, but ' +
    'named in `conflicts`, so that newer data is never overwritten. All other records are published, or none. Waits up ' +
    'to 30 seconds for a running job of the workflow.',
  parameters: [workflow],
  requestBody,
  answer: jsonResponse(
    'Records accepted',
    object({
      message: text(),
      jobId: text(),
      version: integer('Version that the job published or found unchanged'),
      records: recordCounts,
      accepted: integer('Number of records that were accepted'),
      conflicts,
    }),
    { 'x-job-id': 'ID of the job', location: 'URL of the job' },
  ),
  errors: {
    field_invalid: 'A field is not valid',
    workflow_not_found: 'No workflow found',
    quarantine_conflict: 'None of the records is in the quarantine any more',
    workflow_paused: 'The workflow is paused',
    push_timeout: 'Accepting took longer than `limits.timeout`',
    push_busy: {
      description: 'A job of the workflow did not finish within 30 seconds, or too many requests are waiting',
      headers: { 'x-job-id': 'ID of the unfinished job', 'retry-after': RETRY_AFTER },
    },
    push_canceled: 'The job was canceled',
    push_refused: {
      description: 'A quota or a limit would be exceeded. Nothing was published',
      headers: {
        'x-job-id': 'ID of the failed job',
        'x-job-reason': 'Reason: `guard` (also for a quota) or `output`',
      },
    },
  },

  async handle(call) {
    const { services, caller, trace, reply, params } = call;
    const at = { teamId: caller.teamId, workflowId: workflowIdFrom(params.workflowId) };
    const selection = selectionFrom(await bodyFields(call, NEEDS));
    const { jobId, version, records, accepted, conflicts } = await asPusher(call, (long) =>
      acceptQuarantined(services.pushes, { ...at, store: services.store, selection, trace, ...long }),
    );
    reply.headers(jobHeaders({ id: jobId }));
    return { message: 'Records accepted', jobId, version, records, accepted, conflicts };
  },
};

/** POST /v1/workflows/{workflowId}/quarantine/drop */
export const dropQuarantine: Operation<KeyedCall> = {
  id: 'dropQuarantine',
  group: 'Workflows',
  summary: 'Drop records of the quarantine',
  description:
    'Deletes records from the quarantine. Published records are not affected. Repeating the call is harmless.',
  parameters: [workflow],
  requestBody,
  answer: jsonResponse(
    'Records dropped',
    object({ message: text(), dropped: integer('Number of records that were deleted'), conflicts }),
  ),
  errors: { field_invalid: 'A field is not valid', workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { store } = call.services;
    const given = selectionFrom(await bodyFields(call, NEEDS));
    const at = await placeOf(call);
    const { selection, conflicts } = await resolveSelection(store, at, given);
    let dropped = 0;
    for (let done = false; !done; ) {
      const step = await store.quarantine.drop({ ...at, ...selection, limit: DROPPED_AT_ONCE });
      dropped += step.dropped;
      done = step.done;
    }
    return { message: 'Records dropped', dropped, conflicts };
  },
};

const NEEDS = 'a JSON object with `ids` or `all`';

function selectionFrom(fields: Record<string, unknown>): QuarantineSelection {
  const { ids, all, jobId, field, untilJobId } = fields;
  if (all !== undefined && all !== true) invalid('`all` must be true. Leave it out to give `ids`');
  if ((ids === undefined) === (all === undefined)) invalid('Send either `ids` or `all`');
  if (ids !== undefined && (jobId !== undefined || field !== undefined)) {
    invalid('`jobId` and `field` select among `all` records. Leave them out to give `ids`');
  }
  return {
    ids: ids === undefined ? undefined : idsFrom(ids),
    jobId: jobFrom(jobId, 'jobId'),
    field: field === undefined ? undefined : fieldFrom(field),
    untilJobId: jobFrom(untilJobId, 'untilJobId'),
  };
}

function idsFrom(ids: unknown): string[] {
  const isList = Array.isArray(ids) && ids.length > 0 && ids.length <= MAX_IDS;
  if (isList && ids.every((id) => typeof id === 'string' && isId(id))) return ids;
  return invalid(`\`ids\` must be a list of 1 to ${grouped(MAX_IDS)} record IDs. Use \`all\` for more`);
}

function jobFrom(id: unknown, name: string): string | undefined {
  if (id === undefined || (typeof id === 'string' && isGeneratedId('job', id))) return id;
  return invalid(`\`${name}\` must be the ID of a job, such as job_01kadz8v3s7v0s8e1c3q5m2n4p`);
}

function fieldFrom(field: unknown): string {
  if (typeof field === 'string' && isId(field)) return field;
  return invalid(`\`field\` must be a name of 1 to ${grouped(MAX_TEXT)} characters`);
}

/** Whether a record may have this id. Databases refuse other texts. */
function isId(text: string): boolean {
  return text !== '' && text.length <= MAX_TEXT && !text.includes('\0') && text.isWellFormed();
}

/** @throws Problem `workflow_not_found` */
async function placeOf({
  services,
  caller,
  params,
}: Pick<KeyedCall, 'services' | 'caller' | 'params'>): Promise<WorkflowRef> {
  const at = { teamId: caller.teamId, workflowId: workflowIdFrom(params.workflowId) };
  found(await services.store.workflows.get({ teamId: at.teamId, id: at.workflowId }), 'workflow_not_found');
  return at;
}

/** Yields the body with all selected entries, a page at a time. */
async function* linesOf(
  store: Store,
  selection: WorkflowRef & QuarantineSelection,
  format: Exclude<Format, 'json'>,
): AsyncGenerator<Uint8Array> {
  if (format === 'ndjson') {
    for await (const part of partsOf(store, selection)) {
      yield Buffer.from(part.map((entry) => `${quarantinedLine(entry)}\n`).join(''));
    }
    return;
  }
  // The first pass collects the names of the columns.
  const columns = new Set<string>();
  for await (const part of partsOf(store, selection)) {
    for (const { body } of part) {
      for (const name of Object.keys(parseExactly(body) as object)) {
        if (name !== 'id' && columns.size < MAX_COLUMNS) columns.add(name);
      }
    }
    if (columns.size === MAX_COLUMNS) break;
  }
  const names = [...columns];
  yield Buffer.from(csvLine(['id', ...OWN_COLUMNS, ...names]));
  for await (const part of partsOf(store, selection)) {
    const rows = part.map(({ id, jobId, setAsideAt, reasons, body }) => {
      const own = csvLine([id, jobId, toIso(setAsideAt), reasonsText(reasons)]).slice(0, -2);
      return names.length === 0 ? `${own}\r\n` : `${own},${csvRow(body, names)}`;
    });
    yield Buffer.from(rows.join(''));
  }
}

/** Columns of CSV besides the fields of the records. */
const OWN_COLUMNS = ['_job', '_setAsideAt', '_reasons'];

async function* partsOf(
  store: Store,
  selection: WorkflowRef & QuarantineSelection,
): AsyncGenerator<readonly Quarantined[]> {
  for await (const page of quarantinePages(store, selection)) {
    let [part, bytes]: [Quarantined[], number] = [[], 0];
    for (const entry of page) {
      part.push(entry);
      bytes += entry.bytes;
      if (bytes < BYTES_AT_ONCE) continue;
      yield part;
      [part, bytes] = [[], 0];
      await ownTurn(selection.teamId);
    }
    if (part.length > 0) yield part;
  }
}
