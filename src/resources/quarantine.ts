/** A record in the quarantine of a workflow, as the API returns it. */
import { reasonSentence } from '../model/quality/judge.ts';
import type { Quarantined, QuarantineReason } from '../model/quality/quarantine.ts';
import { toIso } from '../std/clock.ts';
import { parseExactly } from '../std/exact-json.ts';
import { as, integer, list, named, nullable, object, raw, text, time } from '../std/shape.ts';
import { ENDED, IDS } from './examples.ts';
import { recordResource } from './workflow.ts';

type Scalar = number | string | boolean | null;
const scalar = (description: string) =>
  raw<Scalar>({ type: ['number', 'string', 'boolean', 'null'], description });

const fields = {
  id: text('Record ID'),
  jobId: text('ID of the job that set the record aside'),
  position: integer('Position of the record in its run, counting from 1'),
  reasons: list(
    object({
      field: text('Field, or path of a nested field'),
      expectation: text('Setting of the field that the record does not meet'),
      found: scalar('Value of the field, shortened'),
      limit: scalar('Value of the setting'),
      message: text('Sentence that names the field, the limit and the value'),
    }),
    'Every expectation that the record does not meet',
  ),
  bytes: integer('Length of the record as JSON, in bytes'),
  setAsideAt: time(),
  record: as('The record as the run delivered it', recordResource),
};

const example = {
  id: '17',
  jobId: IDS.job,
  position: 4,
  reasons: [
    { field: 'price', expectation: 'min', found: -3, limit: 0, message: '`price` is less than 0: -3' },
  ],
  bytes: 50,
  setAsideAt: ENDED,
  record: { id: '17', name: 'Ada Lovelace', price: -3 },
};

export const quarantinedResource = named('QuarantinedRecord', object(fields), example);

/** With `published`: the published record with the same id. */
export const quarantinedBesideResource = named(
  'QuarantinedRecordBeside',
  object({
    ...fields,
    published: as(
      'Record with this ID in the newest version. `null` if there is none',
      nullable(recordResource),
    ),
  }),
  { ...example, published: { id: '17', name: 'Ada Lovelace', price: 12 } },
);

export function shownQuarantined(of: Quarantined) {
  return quarantinedResource.of(shownFields(of));
}

/** @param published the JSON text of the published record with the same id */
export function shownBeside(of: Quarantined, published: string | undefined) {
  return quarantinedBesideResource.of({
    ...shownFields(of),
    published: published === undefined ? null : recordOf(published),
  });
}

function shownFields({ body, reasons, ...of }: Quarantined) {
  return { ...of, reasons: reasons.map(withMessage), record: recordOf(body) };
}

function withMessage(reason: QuarantineReason) {
  return { ...reason, message: reasonSentence(reason) };
}

function recordOf(body: string): { id: string } {
  return parseExactly(body) as { id: string };
}

/** The resource as JSON text. The record is not parsed. */
export function quarantinedLine({
  body,
  reasons,
  setAsideAt,
  id,
  jobId,
  position,
  bytes,
}: Quarantined): string {
  const of = { id, jobId, position, reasons: reasons.map(withMessage), bytes, setAsideAt: toIso(setAsideAt) };
  return `${JSON.stringify(of).slice(0, -1)},"record":${body}}`;
}

/** The reasons as one text. */
export function reasonsText(reasons: readonly QuarantineReason[]): string {
  return reasons.map(reasonSentence).join('; ');
}
