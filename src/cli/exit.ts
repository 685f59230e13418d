/** Exit codes: what a script can tell from the end of a command. */
import { ConfigError } from '../config.ts';
import { Problem } from '../model/error.ts';

/** A mistake in what the user typed, found after the flags were read. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** 0 ok, 1 failed, 2 usage, 3 not found, 4 unauthorised, 5 conflict, 6 unreachable, 7 timed out. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof ConfigError) return 2;
  if (!(error instanceof Problem)) return 1;
  switch (error.code) {
    case 'workflow_not_found':
    case 'webhook_not_found':
    case 'job_not_found':
    case 'team_not_found':
    case 'key_not_found':
      return 3;
    case 'unauthorized':
    case 'scope_missing':
      return 4;
    case 'job_already_queued':
    case 'workflow_paused':
    case 'webhook_limit':
      return 5;
    case 'overloaded':
    case 'database_unavailable':
    case 'stopping':
      return 6;
    default:
      return 1;
  }
}
