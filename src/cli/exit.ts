/** Exit codes, the errors that commands throw, and the message printed for an error. */
import { ConfigError } from '../config/config.ts';
import { InUseError, Problem } from '../model/error.ts';

/** Every exit code with its meaning. The text before the first `;` or `:` is the name of the code. */
export const EXIT_CODES: readonly [code: number, meaning: string][] = [
  [0, 'ok; with `run` and `jobs watch`: the job finished'],
  [1, 'failed; with `run` and `jobs watch`: the job failed or was canceled'],
  [2, 'usage: invalid flag or argument'],
  [3, 'not found'],
  [4, 'unauthorized: the API key is missing, invalid, or lacks a scope'],
  [5, 'conflict: for example, a job is already queued, or a port is in use'],
  [6, 'unreachable: the server or the database does not respond'],
  [7, 'timed out'],
  [130, 'interrupted: by Ctrl-C (143: by SIGTERM)'],
];

/** A mistake in the user's input that commander does not detect. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Something that the user named does not exist. */
export class NotFoundError extends Error {
  override readonly name = 'NotFoundError';
}

/** The command conflicts with the current state, which may change. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
}

/** The error for an action on a paused workflow, with the next step. */
export function pausedError(workflowId: string, cause: unknown): ConflictError {
  const resume = `flowhook workflows resume ${workflowId}`;
  return new ConflictError(`This workflow is paused. To resume it, run \`${resume}\``, { cause });
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof ConfigError) return 2;
  if (error instanceof NotFoundError) return 3;
  if (error instanceof ConflictError) return 5;
  if (error instanceof InUseError || codeOf(error) === 'EADDRINUSE') return 5;
  if (error instanceof Error && 'requestId' in error) return codeOfClientError(error);
  return error instanceof Problem ? codeOfProblem(error) : 1;
}

const UNREACHABLE = ['overloaded', 'database_unavailable', 'database_busy', 'stopping'];

function codeOfProblem({ code, status }: Problem): number {
  if (UNREACHABLE.includes(code)) return 6;
  if (code === 'field_invalid') return 2;
  const byStatus: Record<number, number> = { 401: 4, 403: 4, 404: 3, 408: 7, 409: 5, 410: 3 };
  return byStatus[status] ?? 1;
}

/**
 * Returns the exit code for an error of the HTTP client. The error is recognized by its name, because importing the
 * error classes would load the client for every command.
 */
function codeOfClientError({ name, status, code }: Error & { status?: number; code?: string }): number {
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

/** Returns the message to print for an error, including the next step. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { address, port, hostname } = error as { address?: string; port?: number; hostname?: string };
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return `Port ${port} on ${address} is already in use. Stop the program that uses it, or choose another port with --port or FLOWHOOK_PORT (0 picks any free port)`;
    case 'EADDRNOTAVAIL':
      return `This machine does not have the address ${address}. Choose one of its addresses with --host or FLOWHOOK_HOST`;
    case 'ENOTFOUND':
      return `The hostname ${hostname} has no address. Choose an address of this machine with --host or FLOWHOOK_HOST`;
    case 'EACCES':
      if (port === undefined) return error.message;
      return `This user may not listen on port ${port}. Choose port 1024 or higher with --port or FLOWHOOK_PORT`;
    // The following errors come from a server.
    case 'unauthorized':
      // If the key lacks a scope, the server's message already names the scope.
      if (!error.message.includes('x-api-key')) return error.message;
      return 'The server rejected the API key. Pass a valid one with --key or FLOWHOOK_KEY, or save one with `flowhook login`. To create a key, run `flowhook keys create` on the server';
    case 'route_not_found':
      return 'This path does not exist on the server. Pass only the server address with --url, such as http://127.0.0.1:8080. If the address is right, the server may be too old for this command';
    case 'unreachable':
      return `${error.message}. Start the server with \`flowhook serve\`, or correct --url, FLOWHOOK_URL or the profile`;
    default:
      // Commands have flags for these parameters of the API.
      return error.message.replace(/^The query parameter `(since|until|type|field|filter)`/, '--$1');
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
