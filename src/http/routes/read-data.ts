/** GET /v1/workflows/{workflowId}/data: all data of one workflow. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { Problem } from '../../model/error.ts';
import { type Encoding, encoded, type Format, formatter } from '../../records/formats.ts';
import { openVersion, type Place, type Representation, readWhole } from '../../records/read.ts';
import { readSelected, select } from '../../records/select.ts';
import { recordResource } from '../../resources/workflow.ts';
import { list } from '../../std/shape.ts';
import type { DataVersion } from '../../store/operations/versions.ts';
import { matchesTag, rangeOf } from '../caching.ts';
import { nextLink } from '../cursor.ts';
import { type DataQuery, dataCursor, readDataQuery } from '../data-query.ts';
import { disconnectSignal } from '../disconnect.ts';
import { workflowIdFrom } from '../ids.ts';
import { acceptedEncoding } from '../negotiate.ts';
import { jsonResponse, textContent } from '../openapi/content.ts';
import { type KeyedCall, type Operation, type Parameter, pathParameter } from '../route.ts';
import { bodyHeaders, sendBody, sendStream, setValidators } from '../send-body.ts';

export const readData: Operation<KeyedCall> = {
  id: 'readWorkflowData',
  frozen: true,
  weight: 'whole',
  group: 'Workflows',
  summary: 'Returns all data of one workflow',
  description:
    'The last published version, whole. An empty array before the first run. With `If-None-Match` the answer may ' +
    'be 304, and with `Range` 206, once the version has been read whole before.',
  parameters: [pathParameter('workflowId', 'Workflow ID'), ...queryParameters()],
  answer: jsonResponse(
    'All data records',
    list(recordResource),
    {
      ETag: 'Names the content: for `If-None-Match`',
      Link: 'With `rel="next"`, when `limit` left something out',
      'x-data-version': 'The version',
      'x-total-count': 'How many records the version holds',
    },
    { 'application/x-ndjson': textContent(), 'text/csv': textContent() },
  ),
  refusals: {
    field_invalid: 'A known query parameter has a bad value',
    workflow_not_found: 'No workflow found, or no such version of its data',
    range_not_satisfiable: 'The range lies outside of the answer',
  },

  async handle(call) {
    const { services, caller, request, reply } = call;
    const place = { teamId: caller.teamId, workflowId: workflowIdFrom(call.params.workflowId) };
    const query = readDataQuery(call.query, request.headers.accept);
    const encoding = acceptedEncoding(request.headers['accept-encoding']);
    const named = query.after === undefined ? 'version' : 'cursor';
    const newest = `Leave \`${named}\` out to read the newest`;
    const version = await openVersion(services.store, place, query.version, newest);
    if (query.since !== undefined && query.since !== 0) {
      await openVersion(services.store, place, query.since, 'Leave `since` out to read all records');
      if (query.since > version.number) {
        throw new Problem('field_invalid', {
          sentence: 'The query parameter `version` must not come before `since`',
        });
      }
    }
    const tag = dataTag(version, query.format, encoding);
    setValidators(reply, tag, version);
    if (query.q === undefined && query.since === undefined) reply.header('x-total-count', version.total);
    if (matchesTag(request.headers['if-none-match'], tag)) return reply.code(304).send();
    const { format } = query;
    reply.headers(bodyHeaders({ format, encoding, workflowId: place.workflowId, version: version.number }));
    const answer: Answering = { call, place, version, query, encoding, tag };
    if (query.limit !== undefined) return sendPage(answer);
    if (query.since !== undefined || query.only !== null) return sendAsRead(answer);
    return sendWhole(answer);
  },
};

interface Answering {
  call: KeyedCall;
  place: Place;
  version: DataVersion;
  query: DataQuery;
  encoding: Encoding;
  tag: string;
}

/** A whole body that cannot exceed this needs no file: it is made and sent in one piece. */
const SMALL_BYTES = 256 * 1_024;

async function sendWhole(answer: Answering): Promise<unknown> {
  const { call, place, version, query, encoding, tag } = answer;
  const { representations } = call.services;
  const of: Representation = { place, version, format: query.format, encoding };
  if (call.request.method === 'HEAD') {
    const bytes = representations.bytesOf(of);
    if (bytes !== undefined) call.reply.headers({ 'content-length': bytes, 'accept-ranges': 'bytes' });
    return call.reply.send();
  }
  const isSmall = mostBytes(version, query.format) <= SMALL_BYTES;
  if (isSmall) return call.reply.send(await representations.readSmall(of));
  const kept = await representations.find(of);
  if (kept === undefined) {
    const made = representations.build(of);
    return made === undefined ? sendAsRead(answer) : sendBody(call, made);
  }
  try {
    const range = rangeOf(call.request.headers, { tag, bytes: kept.bytes });
    const { start, end } = range ?? { start: 0, end: kept.bytes };
    call.reply.headers({ 'accept-ranges': 'bytes', 'content-length': end - start });
    if (range !== undefined) {
      call.reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${kept.bytes}`);
    }
    return sendBody(call, kept.part(start, end));
  } catch (error) {
    await kept.close();
    throw error;
  }
}

/** An upper bound. In CSV every row has a comma for each column, and quotes are doubled. */
function mostBytes({ total, largest, fields }: DataVersion, format: Format): number {
  if (format !== 'csv') return (total + 1) * largest;
  return 2 * JSON.stringify(fields).length + total * (2 * largest + fields.length);
}

function sendAsRead(answer: Answering): unknown {
  const { call } = answer;
  if (call.request.method === 'HEAD') return call.reply.send();
  return sendStream(call, bytesOf(answer));
}

function bytesOf({ call, place, version, query, encoding }: Answering): AsyncIterable<Uint8Array> {
  const format = formatter({ format: query.format, columns: version.fields, only: query.only });
  const { store } = call.services;
  if (query.since === undefined) return encoded(readWhole(store, place, version, format), encoding);
  const selection = { ...query, limit: Number.POSITIVE_INFINITY, separator: format.separator };
  return encoded(readSelected(store, place, version, selection, format), encoding);
}

/** Made in memory, since the `link` header depends on where the page ends. */
async function sendPage({ call, place, version, query, encoding }: Answering): Promise<unknown> {
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
    // Formatting blocks the event loop: let others run in between.
    await nextTurn();
  }
  const body = Buffer.concat([...parts, Buffer.from(format.tail)]);
  if (encoding === 'identity') return call.reply.send(body);
  return sendStream(call, encoded(once(body), encoding));
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Names the content for good: a published version changes only by erasures, which are counted. */
function dataTag(version: DataVersion, format: Format, encoding: Encoding): string {
  return `"${version.number}.${version.erasures}-${format}-${encoding}"`;
}

function queryParameters(): Parameter[] {
  const parameter = (name: string, description: string, schema: object): Parameter => ({
    name,
    in: 'query',
    description,
    schema,
  });
  return [
    parameter('format', 'Instead of `Accept`', { enum: ['json', 'ndjson', 'csv'] }),
    parameter('version', 'Another version than the newest', { type: 'integer', minimum: 0 }),
    parameter('fields', 'Names with commas between: only these fields, and `id`', { type: 'string' }),
    parameter('since', 'Only records added or changed after this version', { type: 'integer', minimum: 0 }),
    parameter('q', 'Only records that contain this text: the first 1,000', {
      type: 'string',
      maxLength: 200,
    }),
    parameter('limit', 'At most so many records, fewer if they are large; `Link` leads to the next', {
      type: 'integer',
      minimum: 1,
      maximum: 10_000,
    }),
    parameter('cursor', 'From the `Link` of the answer before; bound to its version', { type: 'string' }),
  ];
}
