/** Exit codes, the errors that commands throw, and the sentence printed for an error. */
import { ConfigError } from '../config/config.ts';
import { InUseError, Problem } from '../model/error.ts';

/** Every exit code with its meaning; the words before the first `;` or `:` are its name. */
export const EXIT_CODES: readonly [code: number, meaning: string][] = [
  [0, 'ok; of `run` and `jobs watch`: the job has finished'],
  [1, 'failed; of `run` and `jobs watch`: the job failed or was canceled'],
  [2, 'usage: an option or argument is wrong'],
  [3, 'not found'],
  [4, 'unauthorised: the key is missing or refused'],
  [5, 'conflict: a job is queued already, a port is taken'],
  [6, 'unreachable: the server or the database cannot be reached'],
  [7, 'timed out'],
  [130, 'interrupted: ended by Ctrl-C (143: by SIGTERM)'],
];

/** The user typed something wrong, found after commander has read the flags. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Something the user named does not exist. */
export class NotFoundError extends Error {
  override readonly name = 'NotFoundError';
}

/** Something is in the way that may go away. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
}

/** The exit code for an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof ConfigError) return 2;
  if (error instanceof NotFoundError) return 3;
  if (error instanceof ConflictError) return 5;
  if (error instanceof InUseError || codeOf(error) === 'EADDRINUSE') return 5;
  if (error instanceof Error && 'requestId' in error) return codeOfAnswer(error);
  if (!(error instanceof Problem)) return 1;
  switch (error.code) {
    case 'workflow_not_found':
    case 'webhook_not_found':
    case 'job_not_found':
    case 'delivery_not_found':
    case 'replay_not_found':
    case 'event_not_found':
    case 'team_not_found':
    case 'key_not_found':
    case 'version_not_found':
    case 'version_pruned':
      return 3;
    case 'unauthorized':
    case 'scope_missing':
      return 4;
    case 'job_already_queued':
    case 'workflow_paused':
    case 'job_ended':
    case 'job_not_waiting':
    case 'webhook_limit':
    case 'push_busy':
      return 5;
    case 'push_timeout':
      return 7;
    case 'field_invalid':
    case 'not_push':
    case 'receives_push':
      return 2;
    case 'overloaded':
    case 'database_unavailable':
    case 'database_busy':
    case 'stopping':
      return 6;
    default:
      return 1;
  }
}

/** For an error of the HTTP client, by its name: importing its classes would load the client for every command. */
function codeOfAnswer({ name, status, code }: Error & { status?: number; code?: string }): number {
  const byName: Record<string, number> = {
    NotFound: 3,
    Unauthorized: 4,
    Forbidden: 4,
    Conflict: 5,
    Unavailable: 6,
    RateLimited: 6,
    TimedOut: 7,
  };
  return byName[name] ?? (code === 'not_json' ? 6 : status === 400 ? 2 : 1);
}

/** The sentence printed for an error. For errors of the system it adds what to do. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { address, port, hostname } = error as { address?: string; port?: number; hostname?: string };
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return `Port ${port} of ${address} is taken by another program. End that one, or choose another port with --port or FLOWHOOK_PORT (0 takes any free one)`;
    case 'EADDRNOTAVAIL':
      return `This machine does not have the address ${address}. Choose one that it has with --host or FLOWHOOK_HOST`;
    case 'ENOTFOUND':
      return `The name ${hostname} has no address. Choose an address of this machine with --host or FLOWHOOK_HOST`;
    case 'EACCES':
      if (port === undefined) return error.message;
      return `This user may not listen on port ${port}. Choose a port from 1024 on with --port or FLOWHOOK_PORT`;
    case 'receives_push':
      return `${error.message}. \`flowhook data import FILE --workflow WORKFLOW\` publishes a file`;
    // These come from the server that a command has asked.
    case 'unauthorized':
      // For a key that lacks a scope, the server's own sentence says which.
      if (!error.message.includes('x-api-key')) return error.message;
      return 'The server refuses this API key. Give another one with --key or FLOWHOOK_KEY, or note one with `flowhook login`; `flowhook keys create` makes one there';
    case 'route_not_found':
      return 'This server has no such path. Give its address alone with --url, such as http://127.0.0.1:8080; an older server may not know this command';
    case 'unreachable':
      return `${error.message}. Start it there with \`flowhook serve\`, or correct --url, FLOWHOOK_URL or the profile that named it`;
    default:
      return error.message;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
