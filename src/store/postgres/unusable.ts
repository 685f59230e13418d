/** A database that cannot be used from the start: what its user is told. */
import { Problem } from '../../model/error.ts';
import { isOutside } from './database.ts';

/** SQLSTATEs of what is wrong with the URL or the account, not with a statement of ours. */
const OF_THE_URL = new Set([
  '3D000', // there is no such database
  '42501', // not allowed
]);

/** The same error as a sentence with the next step in it, if it speaks of the way to the database. */
export function unusable(error: unknown): unknown {
  if (error instanceof Problem) return error;
  const { code } = error as { code?: unknown };
  if (!isOutside(error) && !OF_THE_URL.has(String(code))) return error;
  return new Problem('database_unavailable', {
    sentence: `The PostgreSQL database cannot be used: ${reasonOf(error)}. Start it, or correct FLOWHOOK_DATABASE`,
    cause: error,
  });
}

/** Of a host with several addresses each has a reason of its own: the first will do. */
function reasonOf(error: unknown): string {
  const { message, errors } = error as Error & { errors?: Error[] };
  return message !== '' ? message : (errors?.[0]?.message ?? 'no connection');
}
