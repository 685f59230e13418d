/** Turns the end of reading a source, or the error that ended it, into the result of its run. */
import { MalformedError } from '../../std/lines.ts';
import { usefulPart } from '../process/module-errors.ts';
import type { HarnessResult } from './harness.ts';
import type { SourceEnd } from './read-source.ts';
import { SourceError, UnreadableError } from './source-error.ts';

export async function outcomeOf(read: () => Promise<SourceEnd>): Promise<HarnessResult> {
  try {
    const { state, unchanged, guard } = await read();
    return guard === undefined
      ? { ok: true, state, unchanged }
      : { ok: false, reason: 'guard', error: guard };
  } catch (error) {
    if (error instanceof SourceError || error instanceof UnreadableError || error instanceof MalformedError) {
      return { ok: false, reason: 'source', error: error.message };
    }
    return { ok: false, reason: 'error', error: usefulPart(error) };
  }
}
