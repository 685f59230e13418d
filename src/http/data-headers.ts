/** The headers of an answer that holds records. */

import type { Encoding } from '../records/encodings.ts';
import type { Format } from '../records/formats.ts';
import type { DataVersion } from '../store/operations/versions.ts';
import type { Reply } from './server/exchange.ts';

const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  json: 'application/json; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

/** Names the content for good: a published version changes only by erasures, which are counted. */
export function dataTag(version: DataVersion, format: Format, encoding: Encoding): string {
  return `"${version.number}.${version.erasures}-${format}-${encoding}"`;
}

/** Sets the headers that a 304 carries as well. */
export function setValidators(reply: Reply, tag: string, version: DataVersion): void {
  reply.vary('accept', 'accept-encoding');
  reply.headers({
    etag: tag,
    'cache-control': 'private, no-cache',
    'x-data-version': String(version.number),
  });
}

/** The headers that say how to read the body. */
export function bodyHeaders(input: {
  format: Format;
  encoding: Encoding;
  workflowId: string;
  version: number;
}): Record<string, string> {
  const { format, encoding } = input;
  return {
    'content-type': CONTENT_TYPES[format],
    ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }),
    ...(format === 'csv' ? { 'content-disposition': `attachment; filename="${csvName(input)}"` } : {}),
  };
}

/** A workflow's id may hold any character: only those that are safe in every file system are kept. */
function csvName({ workflowId, version }: { workflowId: string; version: number }): string {
  const safe = workflowId.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 100);
  return `${safe}-v${version}.csv`;
}
