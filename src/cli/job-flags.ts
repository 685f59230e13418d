/** The flags of `flowhook jobs`. */
import { JOB_ORIGINS, JOB_STATES, type JobOrigin, type JobState } from '../model/job.ts';
import { oneOf, someOf, wholeNumber } from './flag-values.ts';
import type { Options } from './settings.ts';

export const DEFAULT_JOBS = 20;
const MAX_JOBS = 1_000;

/** Which jobs `list` shows. @throws UsageError */
export function jobFilterFrom(options: Options): { limit: number; states?: JobState[]; origin?: JobOrigin } {
  const states = someOf('--state', options.state, JOB_STATES);
  return {
    limit: wholeNumber('--limit', options.limit ?? DEFAULT_JOBS, 1, MAX_JOBS),
    ...(states === undefined ? {} : { states }),
    ...(options.origin === undefined
      ? {}
      : { origin: oneOf('--origin', String(options.origin), JOB_ORIGINS) }),
  };
}

/** `--attempt`; undefined when it is missing. @throws UsageError */
export function attemptFrom({ attempt }: Options): number | undefined {
  return attempt === undefined ? undefined : wholeNumber('--attempt', attempt, 1, Number.MAX_SAFE_INTEGER);
}
