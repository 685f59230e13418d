/** The records of a workflow: all data, the changes since a version, and the versions. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { Problem } from '../../model/error.ts';
import type { WorkflowRef } from '../../model/workflow.ts';
import { type Encoding, encoded, FORMATS, type Format, formatter } from '../../records/formats.ts';
import { type Body, mostBytes, openVersion, readWhole } from '../../records/read.ts';
import { type Position, readSelected, select } from '../../records/select.ts';
import { recordResource } from '../../resources/workflow.ts';
import { grouped } from '../../std/amounts.ts';
import { list } from '../../std/shape.ts';
import type { ChangesCursor } from '../../store/operations/history/changes.ts';
import type { DataVersion } from '../../store/operations/versions.ts';
import { matchesTag, rangeOf } from '../caching.ts';
import { cursorFrom, makeCursor, nextLink } from '../input/list-page.ts';
import { formatParameter, MAX_SEARCHED, numberParameter, textParameter } from '../input/query.ts';
import { invalid, workflowIdFrom } from '../input/values.ts';
import { acceptedEncoding, acceptedFormat } from '../negotiate.ts';
import { jsonResponse, NEXT_PAGE, textContent } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { bodyHeaders, sendBody, sendStream, setValidators } from '../send-body.ts';
import { disconnectSignal } from '../server/exchange.ts';

const DEFAULT_LIMIT = 1_000;
/** Maximum number of records per page of a search with `q`. */
const MAX_HITS = 1_000;
const MAX_FIELDS = 200;

interface DataQuery {
  format: Format;
  version: number | undefined;
  /** The fields to return; null for all. */
  only: readonly string[] | null;
  since: number | undefined;
  q: string | undefined;
  /** Undefined for the whole version. */
  limit: number | undefined;
  after: Position | undefined;
}

const DATA = {
  format: formatParameter(FORMATS),
  version: numberParameter('version', 'Version to read (default: the newest)'),
  fields: textParameter('fields', 'Fields to return (comma-separated); `id` is always included'),
  since: numberParameter('since', 'Only records added or changed after this version'),
  q: textParameter(
    'q',
    `Only records whose JSON contains this text (case-insensitive for ASCII), at most ${grouped(MAX_HITS)} per page`,
    MAX_SEARCHED,
  ),
  limit: numberParameter(
    'limit',
    'Maximum number of records per page; fewer if they are large. Default: the whole version, or 1,000 records with `q` or ' +
      '`cursor`',
    { least: 1, most: 10_000 },
  ),
  cursor: textParameter(
    'cursor',
    'Cursor from the `Link` header of the previous page. All pages have the version of the first',
  ),
};

/** GET /v1/workflows/{workflowId}/data */
export const readData: Operation<KeyedCall<'bodies'>> = {
  id: 'readWorkflowData',
  frozen: true,
  weight: 'whole',
  group: 'Workflows',
  summary: 'Read all data of a workflow',
  description:
    'Returns all records of the last published version, or an empty array before the first run. `If-None-Match` may ' +
    'return 304. `Range` may return 206 for a whole version of more than 256 KiB.',
  parameters: [pathParameter('workflowId', 'Workflow ID'), ...Object.values(DATA)],
  answer: jsonResponse(
    'Data records',
    list(recordResource),
    {
      ETag: 'Entity tag of the content, for `If-None-Match`',
      Link: NEXT_PAGE,
      'x-data-version': 'Version of the data',
      'x-total-count': 'Number of records in the version. Missing with `q` or `since`',
    },
    { 'application/x-ndjson': textContent(), 'text/csv': textContent() },
  ),
  errors: {
    field_invalid: 'Bad request: a query parameter has an invalid value',
    workflow_not_found: 'No workflow found, or the version does not exist',
    range_not_satisfiable: 'Range outside of the response body',
  },

  async handle(call) {
    const { services, caller, request, reply } = call;
    const place = { teamId: caller.teamId, workflowId: workflowIdFrom(call.params.workflowId) };
    const query = readDataQuery(call.query, request.headers.accept);
    const encoding = acceptedEncoding(request.headers['accept-encoding']);
    const named = query.after === undefined ? 'version' : 'cursor';
    const newest = `Omit \`${named}\` to read the newest`;
    const version = await openVersion(services.store, place, query.version, newest);
    if (query.since !== undefined && query.since !== 0) {
      await openVersion(services.store, place, query.since, 'Omit `since` to read all records');
      if (query.since > version.number) {
        throw new Problem('field_invalid', {
          sentence: 'The query parameter `version` must not be lower than `since`',
        });
      }
    }
    const tag = dataTag(version, query.format, encoding);
    setValidators(reply, tag, version);
    if (query.q === undefined && query.since === undefined) reply.header('x-total-count', version.total);
    if (matchesTag(request.headers['if-none-match'], tag)) return reply.code(304).send();
    const { format } = query;
    reply.headers(bodyHeaders({ format, encoding, workflowId: place.workflowId, version: version.number }));
    const response: DataResponse = { call, place, version, query, encoding, tag };
    if (query.limit !== undefined) return sendPage(response);
    if (query.since !== undefined || query.only !== null) return sendStreamed(response);
    return sendWhole(response);
  },
};

/** @throws Problem `field_invalid` or `path_invalid` for a known parameter with a bad value */
function readDataQuery(query: string, accept: string | undefined): DataQuery {
  const format = DATA.format.read(query) ?? acceptedFormat(accept, FORMATS);
  const q = DATA.q.read(query);
  const since = DATA.since.read(query);
  if (q !== undefined && since !== undefined) {
    invalid('The query parameters `q` and `since` cannot be combined: omit one of them');
  }
  const cursor = cursorFrom(query, since === undefined ? [2] : [4]);
  const version = DATA.version.read(query);
  if (cursor !== undefined && version !== undefined && version !== cursor[0]) {
    invalid('The query parameter `cursor` belongs to another `version`: omit one of them');
  }
  const limit = DATA.limit.read(query) ?? (cursor === undefined ? undefined : DEFAULT_LIMIT);
  return {
    format,
    version: cursor?.[0] ?? version,
    only: fieldsFrom(query),
    since,
    q,
    limit: q === undefined ? limit : Math.min(limit ?? MAX_HITS, MAX_HITS),
    after: cursor && positionOf(cursor),
  };
}

/** The cursor of the next page, bound to its version. */
function dataCursor(version: number, next: Position): string {
  if (typeof next === 'number') return makeCursor([version, next]);
  return makeCursor([version, next.part === 'written' ? 0 : 1, next.version, next.seq]);
}

function fieldsFrom(query: string): string[] | null {
  const text = DATA.fields.read(query);
  if (text === undefined) return null;
  const fields = text.split(',');
  if (fields.length > MAX_FIELDS || fields.includes('')) {
    invalid(`The query parameter \`fields\` must be 1 to ${MAX_FIELDS} comma-separated names`);
  }
  return fields;
}

function positionOf(cursor: readonly number[]): Position {
  const [, first = 0, version = 0, seq = 0] = cursor;
  if (cursor.length === 2) return first;
  const position: ChangesCursor = { part: first === 0 ? 'written' : 'removed', version, seq };
  return position;
}

interface DataResponse {
  call: KeyedCall<'bodies'>;
  place: WorkflowRef;
  version: DataVersion;
  query: DataQuery;
  encoding: Encoding;
  tag: string;
}

/** A body that cannot exceed this size is sent from memory, without a file. */
const SMALL_BYTES = 256 * 1_024;

async function sendWhole(response: DataResponse): Promise<unknown> {
  const { call, place, version, query, encoding, tag } = response;
  const { bodies } = call.services;
  const of: Body = { place, version, format: query.format, encoding };
  if (call.request.method === 'HEAD') {
    const bytes = bodies.bytesOf(of);
    if (bytes !== undefined) call.reply.headers({ 'content-length': bytes, 'accept-ranges': 'bytes' });
    return call.reply.send();
  }
  if (mostBytes(version, query.format) <= SMALL_BYTES) return call.reply.send(await bodies.readSmall(of));
  const body = await bodies.open(of);
  if (body === undefined) return sendStreamed(response);
  const { bytes } = body;
  if (bytes === undefined) return sendBody(call, body);
  try {
    const range = rangeOf(call.request.headers, { tag, bytes });
    const { start, end } = range ?? { start: 0, end: bytes };
    call.reply.headers({ 'accept-ranges': 'bytes', 'content-length': end - start });
    if (range !== undefined) {
      call.reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${bytes}`);
      body.seek(range);
    }
    return sendBody(call, body);
  } catch (error) {
    body.close();
    throw error;
  }
}

function sendStreamed(response: DataResponse): unknown {
  const { call } = response;
  if (call.request.method === 'HEAD') return call.reply.send();
  return sendStream(call, bytesOf(response));
}

function bytesOf({ call, place, version, query, encoding }: DataResponse): AsyncIterable<Uint8Array> {
  const format = formatter({ format: query.format, columns: version.fields, only: query.only });
  const { store } = call.services;
  if (query.since === undefined) return encoded(readWhole(store, place, version, format), encoding);
  const selection = { ...query, limit: Number.POSITIVE_INFINITY, separator: format.separator };
  return encoded(readSelected(store, place, version, selection, format), encoding);
}

/** The page is built in memory, because the `link` header depends on where the page ends. */
async function sendPage({ call, place, version, query, encoding }: DataResponse): Promise<unknown> {
  const format = formatter({ format: query.format, columns: version.fields, only: query.only });
  const { pages, next } = await select(
    call.services.store,
    place,
    version,
    { ...query, limit: query.limit ?? 1, separator: format.separator },
    disconnectSignal(call),
  );
  if (next !== null) {
    const path = `/v1/workflows/${encodeURIComponent(place.workflowId)}/data`;
    call.reply.header('link', nextLink(path, call.query, dataCursor(version.number, next)));
  }
  if (call.request.method === 'HEAD') return call.reply.send();
  const parts: Uint8Array[] = [Buffer.from(format.head)];
  for (const page of pages) {
    parts.push(format.page(page, parts.length === 1));
    // Formatting blocks the event loop, so other requests get a turn after every page.
    await nextTurn();
  }
  const body = Buffer.concat([...parts, Buffer.from(format.tail)]);
  if (encoding === 'identity') return call.reply.send(body);
  return sendStream(call, encoded(once(body), encoding));
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Identifies the content. Only erasures change a published version, so the tag contains their number. */
function dataTag(version: DataVersion, format: Format, encoding: Encoding): string {
  return `"${version.number}.${version.erasures}-${format}-${encoding}"`;
}
