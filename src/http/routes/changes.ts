/** Operations on the history of records: changes between versions, the versions, and the changes of one record. */
import { Problem } from '../../model/error.ts';
import { CHANGE_TYPES } from '../../model/same-json.ts';
import { encoded } from '../../records/formats.ts';
import { openVersion } from '../../records/read.ts';
import { CHANGES_FORMATS, openSpan, readChanges, type Wanted } from '../../records/read-changes.ts';
import { readRecordHistory } from '../../records/record-history.ts';
import { changeResource, recordChangeResource, versionResource } from '../../resources/workflow.ts';
import { list } from '../../std/shape.ts';
import { digest, matchesTag } from '../caching.ts';
import { filterParameter } from '../input/filter.ts';
import { byNumber, cursorFrom, listOperation, makeCursor } from '../input/list-page.ts';
import { choicesParameter, formatParameter, momentParameter, namesParameter } from '../input/query.ts';
import { invalid, workflowIdFrom } from '../input/values.ts';
import { acceptedEncoding, acceptedFormat } from '../negotiate.ts';
import { jsonResponse, textContent } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { bodyHeaders, sendStream, setValidators } from '../send-body.ts';

const MAX_FIELDS = 200;

const FORMAT = formatParameter(CHANGES_FORMATS);
const SINCE = momentParameter(
  'since',
  'Version that the client already has (0 for none), or a time: the newest version published by then',
);
const UNTIL = momentParameter(
  'until',
  'Last version to include, or a time: the newest version published by then (default: the newest)',
);
const TYPES = choicesParameter('type', CHANGE_TYPES, 'Filter by type of change');
const FIELDS = namesParameter(
  'field',
  'Only changes of this field. Other fields are left out of `fields` and `record`',
  MAX_FIELDS,
);
const FILTER = filterParameter(
  'Only changes that match this expression. `previous` is the record in version `since`',
);

/** GET /v1/workflows/{workflowId}/changes?since=V[&until=] */
export const readWorkflowChanges: Operation<KeyedCall<'examiner'>> = {
  id: 'readWorkflowChanges',
  group: 'Workflows',
  summary: 'List changes since a version or a time',
  description:
    'Returns net changes: a record that was added and removed in between does not appear. Added and changed records ' +
    'come first, removed records last. Pass the header `x-data-version` as `since` in the next call. `If-None-Match` ' +
    'may return 304. CSV has a line for each field of a change.',
  parameters: [
    pathParameter('workflowId', 'Workflow ID'),
    { ...SINCE, required: true },
    UNTIL,
    TYPES,
    FIELDS,
    FILTER,
    FORMAT,
  ],
  answer: jsonResponse(
    'Net changes between the two versions',
    list(changeResource),
    {
      ETag: 'Entity tag of the content, for `If-None-Match`',
      'x-data-version': 'Last version included',
      'x-since-version': 'Version with which it is compared',
    },
    { 'application/x-ndjson': textContent(), 'text/csv': textContent() },
  ),
  errors: {
    field_invalid: '`since` is missing, or a parameter has an invalid value',
    workflow_not_found: 'No workflow found, or the version does not exist',
    version_pruned: 'Version `since` is no longer stored. Read all data again',
  },

  async handle(call) {
    const { services, caller, request, reply, query } = call;
    const place = { teamId: caller.teamId, workflowId: workflowIdFrom(call.params.workflowId) };
    const format = FORMAT.read(query) ?? acceptedFormat(request.headers.accept, CHANGES_FORMATS);
    const encoding = acceptedEncoding(request.headers['accept-encoding']);
    const types = TYPES.read(query) ?? CHANGE_TYPES;
    const fields = FIELDS.read(query);
    const filter = await FILTER.filterFrom(query);
    const span = await openSpan(services.store, place, {
      since:
        SINCE.read(query) ??
        invalid(
          'The query parameter `since` is required: the version that you already have, 0, or a time such as 2026-11-20T10:00Z',
        ),
      until: UNTIL.read(query),
    });
    const { since, until } = span;
    const selection = JSON.stringify([types, fields, filter]);
    const tag = `"${since}-${until.number}.${until.erasures}-changes-${digest(selection)}-${format}-${encoding}"`;
    setValidators(reply, tag, until);
    reply.header('x-since-version', since);
    if (matchesTag(request.headers['if-none-match'], tag)) return reply.code(304).send();
    reply.headers(bodyHeaders({ format, encoding, workflowId: place.workflowId, version: until.number }));
    if (request.method === 'HEAD') return reply.send();
    const wanted: Wanted = {
      types,
      fields: fields === undefined ? null : new Set(fields),
      ...(filter !== undefined && {
        matching: (rows) => services.examiner.matchingRows({ ...place, filter, rows }),
      }),
    };
    const changes = readChanges(services.store, place, span, format, wanted);
    return sendStream(call, encoded(changes, encoding));
  },
};

/** GET /v1/workflows/{workflowId}/versions */
export const listWorkflowVersions = listOperation({
  id: 'listWorkflowVersions',
  group: 'Workflows',
  summary: 'List versions',
  description: 'Returns the versions that can be read, newest first.',
  name: 'versions',
  resource: versionResource,
  order: byNumber,
  parameters: [pathParameter('workflowId', 'Workflow ID')],
  errors: { workflow_not_found: 'No workflow found' },
  async rows({ services: { store }, caller, params }, range) {
    const place = { teamId: caller.teamId, workflowId: workflowIdFrom(params.workflowId) };
    await openVersion(store, place);
    return store.records.versions({ ...place, ...range });
  },
  show: (version) => versionResource.of(version),
});

/** GET /v1/workflows/{workflowId}/records/{recordId}/history */
export const listRecordHistory = listOperation({
  id: 'listRecordHistory',
  group: 'Workflows',
  summary: 'List the changes of a record',
  description:
    'Returns what the versions that can be read did with a record, newest first. A page may have fewer items if the ' +
    'record is large.',
  name: 'history',
  resource: recordChangeResource,
  order: {
    as: 'before',
    of: ({ version }: { version: number }) => makeCursor([version]),
    from: (query) => cursorFrom(query, [1])?.[0],
  },
  parameters: [pathParameter('workflowId', 'Workflow ID'), pathParameter('recordId', 'Record ID')],
  errors: { workflow_not_found: 'No workflow found', record_not_found: 'No version has this record' },
  async rows({ services: { store }, caller, params }, { before, limit }) {
    const place = { teamId: caller.teamId, workflowId: workflowIdFrom(params.workflowId) };
    const { recordId } = params;
    if (recordId === undefined) throw new Problem('record_not_found');
    const page = await readRecordHistory(store, place, { recordId, before, limit: limit - 1 });
    return { rows: page.rows, next: page.next === null ? null : makeCursor([page.next]) };
  },
  show: (change) => recordChangeResource.of(change),
});
