/** The flags of `flowhook data`, and versions as lines of a list. */
import type { RecordCounts } from '../model/job.ts';
import { FORMATS, type Format } from '../records/formats.ts';
import { countWords } from '../std/amounts.ts';
import { UsageError } from './exit.ts';
import { oneOf } from './flag-values.ts';
import type { Options } from './settings.ts';

/** @throws UsageError */
export function formatFrom(options: Options): Format {
  return oneOf('--format', String(options.format ?? (options.json === true ? 'json' : 'ndjson')), FORMATS);
}

/** @throws UsageError */
export function versionFrom(value: unknown, flag: string): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(String(value))) return Number(value);
  throw new UsageError(`${flag} must be the number of a version, found "${value}"`);
}

/** One line of a list. */
export function versionLine(of: {
  version: number;
  publishedAt: string;
  jobId: string | null;
  records: RecordCounts;
}): string {
  const { total, added, changed, removed } = of.records;
  return `${of.version}  ${of.publishedAt}  ${of.jobId}  ${countWords(total, 'record')}: +${added} ~${changed} -${removed}`;
}
