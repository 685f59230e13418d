/** The headers of an answer that holds records. */
import type { Encoding } from '../records/encodings.ts';
import type { Format } from '../records/formats.ts';
import type { DataVersion } from '../store/record-operations.ts';

const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  json: 'application/json; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

/** Names the content for good: published versions never change but by an erasure, which is counted. */
export function dataTag(version: DataVersion, format: Format, encoding: Encoding): string {
  return `"${version.number}.${version.erasures}-${format}-${encoding}"`;
}

/** What a 304 carries too. */
export function validators(tag: string, version: DataVersion): Record<string, string> {
  return {
    etag: tag,
    'cache-control': 'private, no-cache',
    vary: 'accept, accept-encoding',
    'x-data-version': String(version.number),
  };
}

/** What says how the body is to be read. */
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

/** An id may hold anything: what is safe in every file system stays. */
function csvName({ workflowId, version }: { workflowId: string; version: number }): string {
  const safe = workflowId.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 100);
  return `${safe}-v${version}.csv`;
}
