/** Explains why a database cannot be opened. */
import { Problem } from '../../model/error.ts';
import { isOutside } from './failures.ts';

/** SQLSTATEs about the URL or the account, not about a statement of ours. */
const OF_THE_URL = new Set([
  '3D000', // there is no such database
  '42501', // not allowed
]);

/** Turns an error of the connection into a Problem with the next step; returns any other error unchanged. */
export function unusable(error: unknown): unknown {
  if (error instanceof Problem) return error;
  const { code } = error as { code?: unknown };
  if (!isOutside(error) && !OF_THE_URL.has(String(code))) return error;
  return new Problem('database_unavailable', {
    sentence: `The PostgreSQL database cannot be used: ${reasonOf(error)}. Start it, or correct FLOWHOOK_DATABASE`,
    cause: error,
  });
}

/** A host with several addresses has one error for each: the first is enough. */
function reasonOf(error: unknown): string {
  const { message, errors } = error as Error & { errors?: Error[] };
  return message !== '' ? message : (errors?.[0]?.message ?? 'no connection');
}
