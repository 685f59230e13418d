/** What the errors of PostgreSQL and of its client mean. */

/** SQLSTATEs after which the same transaction may succeed: https://www.postgresql.org/docs/18/errcodes-appendix.html */
import { Problem } from '../../model/error.ts';

const TRANSIENT = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
]);

/** Classes of SQLSTATEs about the server, its disk or the connection, not about the statement. */
const OUTSIDE_CLASSES = new Set([
  '08', // connection exceptions
  '28', // refused by the server's access rules
  '53', // out of memory, disk or connections
  '55', // not available now
  '57', // shut down, canceled, timed out
  '58', // input and output
  'XX', // internal, corrupted
]);

/** Codes of Node's errors about sockets, and about untrusted certificates. */
const OF_THE_WIRE = /^(?:E[A-Z]+|ERR_(?:STREAM|SOCKET|TLS|SSL)_.*|UNABLE_TO_.*|.*(?:CERT|SIGNED|ISSUER).*)$/;

/** Single SQLSTATEs of classes that are otherwise about statements. */
const OUTSIDE = new Set([
  '25006', // read_only_sql_transaction: a replica, after a fail-over
  '25P03', // idle_in_transaction_session_timeout
  '25P04', // transaction_timeout
]);

/** Whether this is the error that the server returns for every statement after a failed one. */
export function isAftermath(error: unknown): boolean {
  return sqlState(error) === '25P02';
}

function sqlState(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  // Errors of the server have a severity. EPIPE, an error of the client, also has five letters.
  return typeof code === 'string' && severity !== undefined ? code : undefined;
}

/**
 * Whether the whole transaction may be retried: the database rolled it back in favor of another one, or had prepared its
 * statements for tables that a migration has changed.
 */
export function isTransient(error: unknown): boolean {
  return TRANSIENT.has(sqlState(error) ?? '') || isOutdated(error);
}

/** "cached plan must not change result type", whose SQLSTATE is not specific. */
export function isOutdated(error: unknown): boolean {
  return (error as { routine?: string } | undefined)?.routine === 'RevalidateCachedQuery';
}

/** SQLSTATEs of a lock or a statement that took too long. */
const BUSY = new Set([
  '55P03', // lock_not_available
  '57014', // query_canceled, by statement_timeout as well
]);

/** Whether the database works, but other work was in the way of this statement. */
export function isBusy(error: unknown): boolean {
  return BUSY.has(sqlState(error) ?? '') || isTransient(error);
}

/** Whether the server's disk is full (SQLSTATE 53100). */
export function isFull(error: unknown): boolean {
  return sqlState(error) === '53100';
}

/** Messages of the client about connections, which have neither a SQLSTATE nor a code. */
const OF_THE_CLIENT = new Set([
  'timeout expired',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'The server does not support SSL connections',
  'There was an error establishing an SSL connection',
]);

/** Whether the error means that the database cannot be used now, not that a statement was wrong. */
export function isOutside(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) {
    return OUTSIDE_CLASSES.has(state.slice(0, 2)) || OUTSIDE.has(state) || TRANSIENT.has(state);
  }
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    (typeof code === 'string' && OF_THE_WIRE.test(code)) ||
    (typeof message === 'string' && (OF_THE_CLIENT.has(message) || message.startsWith('SASL: ')))
  );
}

/** Whether a row was refused because of a duplicate key (SQLSTATE 23505), optionally in a particular index. */
export function isDuplicate(error: unknown, index?: string): boolean {
  return (
    sqlState(error) === '23505' &&
    (index === undefined || (error as { constraint?: string }).constraint === index)
  );
}

/** SQLSTATEs about the URL or the account, not about a statement. */
const OF_THE_URL = new Set([
  '3D000', // the database does not exist
  '42501', // insufficient privilege
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

/** A host with several addresses has one error per address: the first is enough. */
function reasonOf(error: unknown): string {
  const { message, errors } = error as Error & { errors?: Error[] };
  return message !== '' ? message : (errors?.[0]?.message ?? 'no connection');
}
