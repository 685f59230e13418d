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

/** SQLSTATEs that are about the server, although the rest of their class is about statements. */
const OUTSIDE = new Set([
  '25006', // read_only_sql_transaction: a replica, after a fail-over
  '25P03', // idle_in_transaction_session_timeout
  '25P04', // transaction_timeout
]);

/** Whether the server returned this error only because an earlier statement of the same transaction had failed. */
export function isAftermath(error: unknown): boolean {
  return sqlState(error) === '25P02';
}

function sqlState(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  // Only errors of the server have a severity. The client's code EPIPE has five letters too, and is not a SQLSTATE.
  return typeof code === 'string' && severity !== undefined ? code : undefined;
}

/**
 * Whether the whole transaction may be retried. The database rolled it back in favor of another transaction, or a
 * migration has changed the tables that its prepared statements use.
 */
export function isTransient(error: unknown): boolean {
  return TRANSIENT.has(sqlState(error) ?? '') || isOutdated(error);
}

/**
 * Whether the error is "cached plan must not change result type". The error is recognized by its routine, because its
 * SQLSTATE is not specific.
 */
export function isOutdated(error: unknown): boolean {
  return (error as { routine?: string } | undefined)?.routine === 'RevalidateCachedQuery';
}

/** SQLSTATEs that mean that waiting for a lock, or running a statement, took too long. */
const BUSY = new Set([
  '55P03', // lock_not_available
  '57014', // query_canceled, by statement_timeout as well
]);

/** Whether the database works, but other work kept this statement from finishing in time. */
export function isBusy(error: unknown): boolean {
  return BUSY.has(sqlState(error) ?? '') || isTransient(error);
}

/** Whether the server's disk is full (SQLSTATE 53100). */
export function isFull(error: unknown): boolean {
  return sqlState(error) === '53100';
}

/** Messages of the client about connections. Errors with these messages have neither a SQLSTATE nor a code. */
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

/** Whether the error means that the database cannot be used now. False if the statement itself is wrong. */
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

/** SQLSTATEs that mean that the URL or the account is wrong, not a statement. */
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
    sentence:
      `The PostgreSQL database cannot be used: ${reasonOf(error)}. ` +
      'Start the database server, or correct FLOWHOOK_DATABASE',
    cause: error,
  });
}

/** For a host with several addresses there is one error per address. Reporting the first error is enough. */
function reasonOf(error: unknown): string {
  const { message, errors } = error as Error & { errors?: Error[] };
  return message !== '' ? message : (errors?.[0]?.message ?? 'the connection failed');
}
