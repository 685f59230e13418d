/** Guards: what keeps a run from publishing fewer records than it should. */
import type { RecordCounts } from './job.ts';
import type { Definition } from './workflow.ts';

/** The guards of one publish. */
export type Guards = Definition['guards'] & {
  /** Refuses a push that removes nearly everything, where the workflow has no `maxDropPercent` of its own. */
  guardsPush?: boolean;
};

/** What a push without a `maxDropPercent` may not exceed: nine of ten records are gone when a file was cut off. */
export const PUSH_DROP_PERCENT = 90;
/** Of fewer records neither that guard nor the warning speaks: small sets are often replaced as a whole. */
export const MANY_RECORDS = 20;

/** Why the guards refuse to publish, as a sentence; undefined when they do not. `before` and `after` are totals. */
export function guardMistake(input: { guards: Guards; before: number; after: number }): string | undefined {
  const { before, after } = input;
  const { minRecords, maxDropPercent, guardsPush = false } = input.guards;
  if (after < minRecords) {
    return (
      `The guard minRecords refused to publish: ${after} records are fewer than the ${minRecords} that it asks for. ` +
      'The published records stay as they are. Look at what the source returned, or lower guards.minRecords'
    );
  }
  const dropPercent = before === 0 ? 0 : ((before - after) * 100) / before;
  if (maxDropPercent !== null && dropPercent > maxDropPercent) {
    return (
      `The guard maxDropPercent refused to publish: the records would fall from ${before} to ${after}, by ` +
      `${Number(dropPercent.toFixed(1))} %, and it allows ${maxDropPercent} %. The published records stay as they ` +
      'are. Look at what the source returned, or raise guards.maxDropPercent'
    );
  }
  if (maxDropPercent === null && guardsPush && before >= MANY_RECORDS && dropPercent > PUSH_DROP_PERCENT) {
    return (
      `The guard maxDropPercent refused to publish: the push has ${after} of ${before} records, and with the mode ` +
      '`replace` all others would be removed. Push with `mode=upsert` to keep them, or with `allowDrop=true` to remove ' +
      `them; \`guards.maxDropPercent\` in the workflow takes the place of this default (${PUSH_DROP_PERCENT})`
    );
  }
  return undefined;
}

/** What whoever pushed should know of the records that this removed; undefined when these were few. */
export function removalWarning({ total, added, removed }: RecordCounts): string | undefined {
  const before = total - added + removed;
  if (before < MANY_RECORDS || 2 * removed <= before) return undefined;
  return (
    `The push removed ${removed} of ${before} records, because they were not in it. ` +
    'To add or change records and keep the others, push with `mode=upsert`'
  );
}
