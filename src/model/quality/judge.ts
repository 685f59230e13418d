/** Decides whether a run meets the expectations of its workflow, and says what it does not meet. */
import { countWords, listed } from '../../std/amounts.ts';
import { printable } from '../../std/printable.ts';
import type { Mode } from '../workflow.ts';
import { driftSentence } from './drift.ts';
import { type Expect, type JobFinding, MAX_FINDINGS } from './expect.ts';
import { isTooMuchAside, MOST_SET_ASIDE } from './quarantine.ts';

/** What a run must meet to be published, and what its records were found to be. */
export interface Expected {
  expect: Pick<Expect, 'records' | 'otherwise'>;
  /** Whether a push that removes nearly all records is refused if the workflow sets no `records.drop`. */
  guardsPush?: boolean;
  /** Findings of fields, in the order of the definition. */
  findings?: readonly JobFinding[];
  /** Numbers of records that the run emitted, and that repeated an id. */
  emitted?: number;
  duplicates?: number;
  /** The records that do not meet the expectations of their fields, with `otherwise: quarantine`. */
  aside?: { records: number; bytes: number };
}

/** `error` is set if nothing may be published. `findings` are stored with the job in any case. */
export interface Judgment {
  error: string | undefined;
  findings: JobFinding[];
}

/**
 * Default `records.drop` of pushes, in percent. A push that removes nine of ten records was probably made from a
 * truncated file.
 */
export const PUSH_DROP_PERCENT = 90;
/**
 * Data sets with fewer records are exempt from the default drop of pushes and the warning, because they are often
 * replaced as a whole.
 */
export const MANY_RECORDS = 20;
/** An error names at most this many findings. */
const NAMED = 5;
/** Sentences shorten longer ids. */
const MAX_ID = 60;

/** @param sizes the total numbers of records before and after the run */
export function judge(expected: Expected, sizes: { mode: Mode; before: number; after: number }): Judgment {
  const { expect, findings: ofFields = [] } = expected;
  const ofRecords = recordFindings(expected, sizes);
  const findings = [...ofRecords, ...ofFields].slice(0, MAX_FINDINGS);
  const ofAside = asideFindings(expected);
  const always = ofAside.length > 0 ? undefined : defaultMistake(expected, sizes);
  if (always !== undefined) return { error: always, findings };
  const refusing = {
    warn: [],
    refuse: findings,
    // If the bad records are too many to set aside, all of their findings say why.
    quarantine: [...ofRecords, ...ofAside, ...ofFields.filter((one) => ofAside.length > 0 || isOfRun(one))],
  }[expect.otherwise];
  if (refusing.length === 0) return { error: undefined, findings };
  const named = findingsSentence(refusing);
  return {
    error: `Nothing was published: ${named}. Check what the source returned, or change \`expect\``,
    findings:
      refusing === findings ? findings : [...new Set([...refusing, ...findings])].slice(0, MAX_FINDINGS),
  };
}

/** A finding of a field that no single record causes. */
function isOfRun({ expectation }: JobFinding): boolean {
  return expectation === 'filled';
}

/** What is always refused, even with `otherwise: warn`, because the definition does not mention it. */
function defaultMistake(
  { expect, guardsPush = false }: Expected,
  { mode, before, after }: { mode: Mode; before: number; after: number },
): string | undefined {
  const { min, drop } = expect.records;
  const least = defaultMinRecords(mode);
  if (min === null && after < least) {
    return (
      `Nothing was published: there would be ${after} records, fewer than \`expect.records.min\` ` +
      `(default: ${least}). Check what the source returned, or set \`expect.records.min\` to 0`
    );
  }
  if (drop !== null || !guardsPush || before < MANY_RECORDS || change(before, after) >= -PUSH_DROP_PERCENT)
    return undefined;
  return (
    `Nothing was published: the push has ${after} of ${before} records, and in the mode \`replace\` would remove ` +
    'the others. Push with `mode=upsert` to keep them, or with `allowDrop=true` to remove them. ' +
    `\`expect.records.drop\` of the workflow (default for pushes: ${PUSH_DROP_PERCENT}%) sets the limit`
  );
}

function recordFindings(
  { expect, emitted = 0, duplicates = 0 }: Expected,
  { before, after }: { before: number; after: number },
): JobFinding[] {
  const { min, max, drop, rise, duplicates: most } = expect.records;
  const percent = change(before, after);
  const repeated = emitted === 0 ? 0 : (duplicates * 100) / emitted;
  const found: JobFinding[] = [];
  const add = (name: string, value: number, limit: number, count = after) =>
    found.push({
      expectation: `records.${name}`,
      field: null,
      found: rounded(value),
      limit,
      count,
      examples: [],
      drift: false,
    });
  if (min !== null && after < min) add('min', after, min);
  if (max !== null && after > max) add('max', after, max);
  if (drop !== null && -percent > drop) add('drop', -percent, drop);
  if (rise !== null && percent > rise) add('rise', percent, rise);
  if (most !== null && repeated > most) add('duplicates', repeated, most, duplicates);
  return found;
}

/** In percent, negative for a drop. A data set that was empty has neither risen nor dropped. */
function change(before: number, after: number): number {
  return before === 0 ? 0 : ((after - before) * 100) / before;
}

/**
 * Why so many bad records cannot be set aside. If most records are bad, it is the expectation or the source that is
 * wrong, and not single records.
 */
function asideFindings({ emitted = 0, aside = { records: 0, bytes: 0 } }: Expected): JobFinding[] {
  const { records: count, bytes } = aside;
  const of = (expectation: string, found: number, limit: number): JobFinding[] => [
    { expectation, field: null, found, limit, count, examples: [], drift: false },
  ];
  if (2 * count > emitted) return of('records.quarantined', rounded((count * 100) / emitted), 50);
  if (!isTooMuchAside(aside)) return [];
  const { records, bytes: most } = MOST_SET_ASIDE;
  return count > records
    ? of('records.quarantinedCount', count, records)
    : of('records.quarantinedBytes', bytes, most);
}

/** The first findings, as a part of a sentence, and the number of the others. */
export function findingsSentence(findings: readonly JobFinding[]): string {
  const more = findings.length > NAMED ? `; and ${findings.length - NAMED} more` : '';
  return findings.slice(0, NAMED).map(findingSentence).join('; ') + more;
}

/** The first findings, as many as fit into the number of bytes. */
export function fittingFindings(
  findings: readonly JobFinding[],
  most: number,
): { findings: JobFinding[]; truncated: boolean } {
  let bytes = 0;
  const after = findings.findIndex((finding) => {
    bytes += Buffer.byteLength(JSON.stringify(finding)) + 1;
    return bytes > most;
  });
  return after === -1
    ? { findings: [...findings], truncated: false }
    : { findings: findings.slice(0, after), truncated: true };
}

/** A finding as a part of a sentence, without a final period. */
export function findingSentence(finding: JobFinding): string {
  return inOneLine(finding.drift ? driftSentence(finding) : unmetSentence(finding));
}

/** Field names and ids come from the source: they must not look like lines of their own in logs, mails and terminals. */
function inOneLine(sentence: string): string {
  return printable(sentence.replaceAll(/[\t\r\n]+/g, ' '));
}

function unmetSentence(finding: JobFinding): string {
  const { expectation, field, found, limit, count } = finding;
  const name = field === null ? `expect.${expectation}` : `expect.fields.${field}.${expectation}`;
  const there = countWords(count, 'record');
  switch (expectation) {
    case 'records.min':
      return `${there}, fewer than \`${name}\` (${limit})`;
    case 'records.max':
      return `${there}, more than \`${name}\` (${limit})`;
    case 'records.drop':
      return `${there} after a drop by ${found} %, more than \`${name}\` (${limit}%)`;
    case 'records.rise':
      return `${there} after a rise by ${found} %, more than \`${name}\` (${limit}%)`;
    case 'records.duplicates':
      return `${there} (${found} %) had an id that the run had already emitted, more than \`${name}\` (${limit}%)`;
    case 'records.quarantined':
      return `${there} (${found} %) do not meet an expectation of their fields, more than half`;
    case 'records.quarantinedCount':
      return `${there} do not meet an expectation of their fields, more than a run can set aside (${limit})`;
    case 'records.quarantinedBytes':
      return `${there} do not meet an expectation of their fields, with more bytes than a run can set aside (${limit})`;
    case 'filled':
      return `\`${field}\` is filled in ${found} % of the records, less than \`${name}\` (${limit}%)${example(finding)}`;
    default:
      return `\`${field}\` of ${there} ${MISMATCH[expectation] ?? `does not meet \`${expectation}\``}${limitWords(finding)}${example(finding)}`;
  }
}

/** Why one record does not meet an expectation of a field, as a part of a sentence: `price` is less than 0: -3. */
export function reasonSentence(
  reason: Pick<JobFinding, 'expectation' | 'field' | 'found' | 'limit'>,
): string {
  const { expectation, field, found } = reason;
  return inOneLine(
    `\`${field}\` ${MISMATCH[expectation] ?? `does not meet \`${expectation}\``}${limitWords(reason)}: ${JSON.stringify(found)}`,
  );
}

/** After "`price` of 12 records". */
const MISMATCH: Readonly<Record<string, string>> = {
  type: 'is not of the type',
  min: 'is less than',
  max: 'is more than',
  unique: 'has the value of another record',
  oneOf: 'is none of',
  matches: 'does not match',
  notSearched: 'has too many characters, or the patterns of the run have taken too long, to search it for',
};

function limitWords({ expectation, limit }: Pick<JobFinding, 'expectation' | 'limit'>): string {
  return expectation === 'unique' ? '' : ` ${limit}`;
}

function example({ expectation, found, examples }: JobFinding): string {
  const [id] = examples;
  if (id === undefined) return '';
  if (expectation === 'filled') {
    const noun = examples.length === 1 ? 'record' : 'records';
    return `; it is empty in the ${noun} ${listed(examples.map(shortId))}`;
  }
  return `, such as ${JSON.stringify(found)} ${recordWords(id)}`;
}

/** How sentences name the record whose value they quote. An erasure searches for these words. */
export function recordWords(id: string): string {
  return inOneLine(`of the record ${shortId(id)}`);
}

function shortId(id: string): string {
  return id.length > MAX_ID ? `${id.slice(0, MAX_ID).toWellFormed()}…` : id;
}

function rounded(value: number): number {
  return Number(value.toFixed(1));
}

/**
 * In the mode `replace`, a run without records would delete all data, so at least one record is required. In the other
 * modes, such a run deletes nothing.
 */
export function defaultMinRecords(mode: Mode): number {
  return mode === 'replace' ? 1 : 0;
}
