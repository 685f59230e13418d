/** Maps the error of a request without a complete response to an outcome and a sentence for the team. */
import type { AttemptOutcome } from '../model/delivery.ts';
import { BlockedAddressError, connectionOf } from '../net/dispatcher.ts';
import { ResolveError } from '../net/resolver.ts';

interface Failure {
  outcome: Exclude<AttemptOutcome, 'ok' | 'http'>;
  error: string;
}

/** The error with which the service itself ends an attempt: it timed out, or the endpoint exceeds a limit. */
export class CutOffError extends Error {
  override readonly name = 'CutOffError';
  readonly outcome: 'timeout' | 'protocol';

  constructor(outcome: 'timeout' | 'protocol', sentence: string) {
    super(sentence);
    this.outcome = outcome;
  }
}

const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|ERROR_IN_CERT)/;

/** Sentences for TLS errors; the code is appended, so that it can be looked up. */
const TLS_SENTENCES: readonly [RegExp, string][] = [
  [/^CERT_HAS_EXPIRED$/, "The endpoint's certificate has expired. It must be renewed there"],
  [/^CERT_NOT_YET_VALID$/, "The endpoint's certificate is not valid yet. Compare the clocks of both sides"],
  [
    /^(DEPTH_ZERO_)?SELF_SIGNED_CERT/,
    "The endpoint's certificate is signed by itself, not by an authority that is trusted here. If it is meant, start " +
      'the service with NODE_EXTRA_CA_CERTS naming a file that holds it',
  ],
  [
    /^UNABLE_TO_/,
    "The endpoint's certificate comes from an authority that is not known here, or the endpoint does not send the " +
      'certificates in between. An authority of your own goes into the file that NODE_EXTRA_CA_CERTS names',
  ],
  [/^CERT_REVOKED$/, "The endpoint's certificate was revoked"],
  [
    /WRONG_VERSION_NUMBER$|PACKET_LENGTH_TOO_LONG$|HTTP_REQUEST$|INVALID_RECORD|^EPROTO$/,
    'No secure connection could be made: the endpoint does not speak TLS at this port. Is the URL meant to be http://?',
  ],
];

const CONNECT_SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused: nothing listens at this address and port',
  ECONNRESET: 'The connection was reset while it was being made',
  EHOSTUNREACH: 'The host cannot be reached from here',
  ENETUNREACH: 'The network of this address cannot be reached from here',
  EADDRNOTAVAIL: 'No connection could be made: this machine has no free port or no address of that kind',
  EMFILE: 'No connection could be made: this process has too many files and connections open',
};

const MAX_CHARACTERS = 300;

/** @param error what the dispatcher threw, or what reading the response threw */
export function failureOf(error: unknown): Failure {
  const { outcome, error: sentence } = named(error);
  return {
    outcome,
    error: sentence.length > MAX_CHARACTERS ? `${sentence.slice(0, MAX_CHARACTERS)}…` : sentence,
  };
}

/**
 * Whether the connection ended before any byte of a response. On a kept-alive connection this usually means that the
 * endpoint closed it while the request was being written, so that the request was not read.
 */
export function endedUnanswered(error: unknown): boolean {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_SOCKET') return !isImproper(message);
  return code === 'ECONNRESET' || code === 'EPIPE';
}

function named(error: unknown): Failure {
  if (error instanceof BlockedAddressError) return { outcome: 'blocked', error: error.message };
  if (error instanceof ResolveError) return { outcome: 'dns', error: error.message };
  if (error instanceof CutOffError) return { outcome: error.outcome, error: error.message };
  const { code = '', message, name, syscall } = error as NodeJS.ErrnoException;
  // Set for a failed connection attempt that reached the endpoint: then TLS is what failed.
  const reached = connectionOf(error)?.connectedMs ?? null;
  if (reached !== null && code === 'UND_ERR_CONNECT_TIMEOUT') {
    return { outcome: 'timeout', error: 'The endpoint was reached, but did not agree upon TLS in time' };
  }
  if (reached !== null && (code === 'ECONNRESET' || code === 'EPIPE')) {
    return { outcome: 'tls', error: 'The endpoint closed the connection before TLS was agreed upon' };
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || (syscall === 'connect' && code === 'ETIMEDOUT')) {
    return {
      outcome: 'timeout',
      error: 'No connection could be made in time: nothing answers at this address, or a firewall drops it',
    };
  }
  if (TLS_CODES.test(code)) return { outcome: 'tls', error: tlsSentence(code, error) };
  if (code === 'ECONNREFUSED' || syscall === 'connect') {
    return { outcome: 'connect', error: CONNECT_SENTENCES[code] ?? `No connection could be made: ${code}` };
  }
  // For 101 undici throws no error of its own, only an assertion.
  if ((code === 'UND_ERR_SOCKET' && isImproper(message)) || code === 'ERR_ASSERTION') {
    return {
      outcome: 'protocol',
      error: 'The endpoint answered 100 or 101 (go on, or switch the protocol), which nobody had asked for',
    };
  }
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_ABORTED') {
    const how = code === 'ECONNRESET' ? 'reset' : 'closed';
    return { outcome: 'protocol', error: `The connection was ${how} before the answer was complete` };
  }
  if (name === 'HTTPParserError') {
    return { outcome: 'protocol', error: `The answer is not valid HTTP/1.1: ${message}` };
  }
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
    return { outcome: 'protocol', error: 'The answer is not as long as its content-length header says' };
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return { outcome: 'protocol', error: 'The headers of the answer are larger than 16 KiB' };
  }
  return { outcome: 'protocol', error: `The request failed: ${message || code || String(error)}` };
}

function tlsSentence(code: string, error: unknown): string {
  const { reason } = error as { reason?: unknown };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `The endpoint's certificate is for another host: ${reason ?? code}`;
  }
  const sentence = TLS_SENTENCES.find(([form]) => form.test(code))?.[1];
  return sentence === undefined ? `No secure connection could be made: ${code}` : `${sentence} (${code})`;
}

/** Undici's messages for a response 100 or 101. */
function isImproper(message: string): boolean {
  return message === 'bad response' || message === 'bad upgrade';
}
