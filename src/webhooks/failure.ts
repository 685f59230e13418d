/** Turns the error of a request that got no whole answer into an outcome and a sentence. */
import type { AttemptOutcome } from '../model/delivery.ts';
import { BlockedAddressError } from '../net/dispatcher.ts';
import { ResolveError } from '../net/resolver.ts';

/** The reason with which an attempt is aborted when its time is up. */
export class AttemptTimeoutError extends Error {
  override readonly name = 'AttemptTimeoutError';
}

export interface Failure {
  outcome: Exclude<AttemptOutcome, 'ok' | 'http'>;
  error: string;
}

const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|ERROR_IN_CERT)/;

const CONNECT_SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused: nothing listens at this address and port',
  ECONNRESET: 'The connection was reset while it was being made',
  EHOSTUNREACH: 'The host cannot be reached from here',
  ENETUNREACH: 'The network of this address cannot be reached from here',
};

/** @param error what the dispatcher or the reading of the answer threw */
export function failureOf(error: unknown): Failure {
  if (error instanceof BlockedAddressError) return { outcome: 'blocked', error: error.message };
  if (error instanceof ResolveError) return { outcome: 'dns', error: error.message };
  if (error instanceof AttemptTimeoutError) return { outcome: 'timeout', error: error.message };
  const { code = '', message, name, syscall } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_CONNECT_TIMEOUT') {
    return { outcome: 'timeout', error: 'No connection could be made in time' };
  }
  if (TLS_CODES.test(code)) return { outcome: 'tls', error: `No secure connection could be made: ${code}` };
  if (code === 'ECONNREFUSED' || syscall === 'connect') {
    return { outcome: 'connect', error: CONNECT_SENTENCES[code] ?? `No connection could be made: ${code}` };
  }
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_ABORTED') {
    return { outcome: 'protocol', error: 'The connection was closed before the answer was complete' };
  }
  if (name === 'HTTPParserError') {
    return { outcome: 'protocol', error: `The answer is not valid HTTP/1.1: ${message}` };
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return { outcome: 'protocol', error: 'The headers of the answer are larger than 16 KiB' };
  }
  return { outcome: 'protocol', error: `The request failed: ${message || code || String(error)}` };
}
