/**
 * Finds the records of a version among rows of other versions, in the order of `seq`.
 *
 * The rows of a record follow each other in the primary key. If there are few, reading all of them is fastest. If many
 * versions have changed the records, each number of the range is looked up instead: one row per record, however many
 * versions there are. Measured: a lookup takes as long as reading 8 to 16 rows.
 */

import type { Pick } from '../../sql.ts';
import { inWorkflow } from '../record-indexes.ts';

/** Number of rows of a record from which its range is looked up. */
const MANY = 16;
/** Number of places of a range at which the rows of a record are counted. */
const PLACES = 4;

/** How a statement finds the rows: reads all of them, or decides that for each range. */
export type Reading = 'all' | 'few';

/**
 * Returns how to find the records of a workflow with this number of versions. Without long histories, a statement that
 * decides nothing is planned faster (by half a millisecond on PostgreSQL).
 */
export function readingOf(versions = MANY): Reading {
  return versions < MANY ? 'all' : 'few';
}

/**
 * SQL for the newest row up to a version that has this `seq`. A record keeps its `seq` until it is removed, so that its
 * rows follow each other without a gap. The primary key ends with `added_in`, so that only this row is read, however many
 * versions have changed the record.
 */
export function lastBy(pick: Pick, column: string, seq: string, version: string): string {
  return `(select ${column} from record last
    where ${inWorkflow(pick, 'last')} and last.seq = ${seq} and last.added_in <= ${version}
    order by last.added_in desc limit 1)`;
}

/**
 * SQL of a table that decides how the numbers after `$3` and up to `$4` are read: either all rows up to `scanned` are
 * read, or each number up to `looked` is looked up. The other of the two columns is `$3`.
 */
export function reading(pick: Pick): string {
  const start = `$3::bigint + ($4::bigint - $3::bigint) * place.column1 / ${PLACES}`;
  const places = Array.from({ length: PLACES }, (_, place) => `(${place})`).join(', ');
  return `reading as materialized (
    select case when is_long then $3::bigint else $4::bigint end as scanned,
           case when is_long then $4::bigint else $3::bigint end as looked
    from (select exists (
      select 1 from (values ${places}) as place
      where (select count(*) = ${MANY} and min(seq) = max(seq) from (
               select record.seq from record where ${inWorkflow(pick)} and record.seq > ${start}
               order by record.seq limit ${MANY}) as next)) as is_long limit 1) as found)`;
}

/**
 * SQL that reads all rows of a range, and selects `seq` and a column, as `value`, of those in the version `$5`. The
 * range is one of `seq` instead of a number of rows, which limits how many rows of other versions a statement reads.
 */
export function scanned(pick: Pick, column: string, end = '(select scanned from reading)'): string {
  // PostgreSQL's planner estimates the size of the range by its highest possible end, whose value it knows.
  const most = pick({ sqlite: '', postgres: 'and record.seq <= $4' });
  return `select record.seq, ${column} as value from record
    where ${inWorkflow(pick)} and record.seq > $3 and record.seq <= ${end} ${most}
      and record.added_in <= $5 and (record.removed_in is null or record.removed_in > $5)`;
}

/**
 * SQL that looks up each number of a range, and selects `seq` and a column, as `value`, of the rows in the version `$5`,
 * in the order of `seq`.
 */
export function looked(pick: Pick, column: string, end = '(select looked from reading)'): string {
  const numbers = pick({
    sqlite: `(with recursive number (seq) as (
        select $3 + 1 where $3 < ${end} union all select seq + 1 from number where seq < ${end})
      select seq from number)`,
    postgres: `generate_series($3::bigint + 1, ${end})`,
  });
  const value = `case when last.removed_in is null or last.removed_in > $5 then ${column} end`;
  // The limit keeps SQLite from looking up a row each time that its value is used.
  return `select seq, value from (
      select number.seq, ${lastBy(pick, value, 'number.seq', '$5')} as value
      from ${numbers} as number ${pick({ sqlite: '', postgres: '(seq)' })} limit $4::bigint - $3::bigint) as each
    where value is not null`;
}
