/** What can be done about a run that failed, by the reason that the service tells. */
import type { Job } from 'flowhook-client';

export const HINTS: Record<NonNullable<Job['reason']>, string> = {
  error: 'The program failed: its last lines in the log say why.',
  source:
    'What it reads from did not answer as expected. Look at the address and the key in the definition, and try the source with `flowhook workflows test`.',
  lost: 'The server that ran it stopped or lost the database. Nothing was published; running it again is safe.',
  timeout: 'It took longer than allowed. Raise `limits.timeout` in its definition, or make the run smaller.',
  memory: 'It used more memory than allowed. Raise `limits.memory` in its definition, or read in pieces.',
  output:
    'What it wrote could not be read as records: every line must be one JSON object. The log shows the line.',
  guard:
    'It would have replaced or removed too much, so nothing was published. If it is right, change `guards` in its definition and run it again.',
  invalid_record:
    'A record is not valid: each needs an `id`, and `name` and `email` must be texts. Fix the source, or set `key` or `onInvalid` in the definition.',
};
