/** Guards: what keeps a run from publishing fewer records than it should. */
import type { Definition } from './workflow.ts';

/** Why the guards refuse to publish, as a sentence; undefined when they do not. `before` and `after` are totals. */
export function guardMistake(input: {
  guards: Definition['guards'];
  before: number;
  after: number;
}): string | undefined {
  const { before, after } = input;
  const { minRecords, maxDropPercent } = input.guards;
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
  return undefined;
}
