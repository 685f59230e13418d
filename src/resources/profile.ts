/** The profile of a run, as the API returns it. */

import { DISTINCT_ERROR, type ProfileField, VALUE_KINDS } from '../model/quality/profile.ts';
import { MODES } from '../model/workflow.ts';
import {
  as,
  choice,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  optional,
  text,
  time,
} from '../std/shape.ts';
import type { VersionProfile } from '../store/operations/quality/profiles.ts';
import { IDS, STARTED } from './examples.ts';

const counts = Object.fromEntries(VALUE_KINDS.map((kind) => [kind, optional(integer())])) as Record<
  (typeof VALUE_KINDS)[number],
  ReturnType<typeof optional<number, number>>
>;

export const profileResource = named(
  'Profile',
  object({
    version: integer('Version that the run published'),
    jobId: text('ID of the job. The job may have been deleted'),
    mode: choice(
      MODES,
      'Mode of the run. Runs with `replace` are compared only with each other, and so are the others',
    ),
    createdAt: time('Time of publication'),
    records: integer('Number of valid records that the run emitted, including repeated ids'),
    duplicates: integer('Number of these records that repeat an id of the run'),
    fields: list(
      object({
        name: text('Name of the field, or its path in nested objects: `address.city`'),
        present: integer('Number of records that have the field, with any value'),
        filled: integer('Number of records in which the field is not missing, `null` or an empty string'),
        kinds: as(
          'Number of filled values of each kind that occurs. `numeric` is a text that contains just a number',
          object(counts),
        ),
        distinct: nullable(
          integer(
            `Estimated number of different texts, numbers and booleans (standard error: ${DISTINCT_ERROR * 100} %). \`null\` if there are none`,
          ),
        ),
        min: nullable(number('Smallest number. `null` if there is none')),
        max: nullable(number('Largest number. `null` if there is none')),
        shortest: nullable(integer('Length of the shortest text. `null` if there is none')),
        longest: nullable(integer('Length of the longest text. `null` if there is none')),
        earliest: nullable(text('First day of the dates and times. `null` if there is none')),
        latest: nullable(text('Last day of the dates and times. `null` if there is none')),
      }),
      'Fields in order of first appearance, at most 200',
    ),
    omitted: integer('Number of fields that are not listed. Counted up to 1,000'),
  }),
  {
    version: 17,
    jobId: IDS.job,
    mode: 'replace',
    createdAt: STARTED,
    records: 120,
    duplicates: 0,
    fields: [
      {
        name: 'price',
        present: 120,
        filled: 118,
        kinds: { number: 110, integer: 8 },
        distinct: 104,
        min: 0.5,
        max: 249,
        shortest: null,
        longest: null,
        earliest: null,
        latest: null,
      },
    ],
    omitted: 0,
  },
);

const NO_VALUES = {
  distinct: null,
  min: null,
  max: null,
  shortest: null,
  longest: null,
  earliest: null,
  latest: null,
} as const;

export function shownProfile({ fields, ...profile }: VersionProfile) {
  return profileResource.of({
    ...profile,
    fields: fields.map((field: ProfileField) => ({ ...NO_VALUES, ...field })),
  });
}
